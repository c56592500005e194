"""The daemon on a terminal: the same commands, with a prompt, history and help.

Except for the requests themselves, everything happens in one thread, that of prompt_toolkit's event
loop. So a result never appears in the middle of an answer or of a line being typed.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import sys
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, NoReturn

from prompt_toolkit import PromptSession, print_formatted_text
from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from boinc_gahp import __version__
from boinc_gahp.config.places import log_file, state_dir
from boinc_gahp.daemon._console_input import CommandCompleter, MaskAuthenticator, PrivateHistory
from boinc_gahp.daemon._engine import Engine
from boinc_gahp.daemon._projects import Projects
from boinc_gahp.daemon.main import CLOSING, leave, prepare_process
from boinc_gahp.errors import GahpError
from boinc_gahp.gahp import boinc_commands
from boinc_gahp.gahp.command import AsyncRequest, help_text
from boinc_gahp.gahp.commands import COMMANDS, PREFIXES
from boinc_gahp.gahp.lines import decode, encode
from boinc_gahp.states import HTCondorState
from boinc_gahp.text import count, quoted, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.daemon._engine import FinishedRequest

log = logging.getLogger("boinc_gahp.daemon")

#: The most jobs of a batch to list one by one; for more, only the number per status is shown.
LISTED_JOBS = 20
PROMPT = "boinc_gahp> "
_STYLE = Style.from_dict(
    {
        "good": "ansigreen",
        "bad": "ansired",
        "faint": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)


def run_console(
    load_settings: Callable[[], Settings],
    on_settings: Callable[[Settings], object],
) -> NoReturn:
    """Talk to the person at the terminal until they leave, then end the process with status 0.

    Args:
        load_settings: as for :func:`boinc_gahp.daemon.main.serve`.
        on_settings: called with the settings before a project is used; here the log is started.
    """
    prepare_process()
    projects = Projects(load_settings, on_settings)
    status = 0
    try:
        # Not asyncio.run: it waits for threads, and one may hang on a dead file server.
        asyncio.new_event_loop().run_until_complete(Console(projects).converse())
    except KeyboardInterrupt:
        pass
    except BaseException as error:  # the process ends here, on purpose
        log.critical("the console ends with an error", exc_info=error)
        print(f"boinc_gahp: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        status = 1
    projects.close_service(CLOSING)
    leave(status)


class _Engine(Engine):
    """An engine that shows results when they come, and keeps none for RESULTS."""

    def announce(self) -> bytes:
        """Show the new results."""
        for finished in self.take_results():
            show(finished)
        return b""


class Console:
    """A conversation with a person."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine = _Engine(projects, on_result=self._wake)
        self._ended = False
        self._session: PromptSession[str] | None = None

    async def converse(self) -> None:
        """Greet, then answer lines until end of input, QUIT or a stop signal."""
        self._loop = asyncio.get_running_loop()
        self._session = session = self._greet()
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._stop)
        with patch_stdout(raw=True):
            while not (self._ended or self._engine.conversation.quitting):
                try:
                    text = await session.prompt_async(PROMPT)
                except KeyboardInterrupt:
                    continue
                except EOFError:
                    break
                for line in filter(str.strip, text.splitlines()):
                    if not self._engine.conversation.quitting:
                        self._handle(line)
            self._engine.announce()
            if pending := self._engine.unanswered:
                unfinished = count(pending, "request")
                _print("faint", f"{unfinished} not finished; those on the project continue")

    def _greet(self) -> PromptSession[str]:
        history = None
        _print("plain", f"boinc_gahp {__version__}; type help")
        try:
            settings = self._projects.settings()
        except GahpError as error:
            _print("bad", "settings:", f" {error}")
        else:
            history = state_dir(settings) / "console_history"
            for why in settings.no_authenticator.values():
                _print("bad", "settings:", f" {why}")
            project = settings.project
            if project is not None and project.authenticator is not None:
                _print("plain", f"project: {project.url}")
            else:
                _print("plain", "project: none; type BOINC_SELECT_PROJECT url authenticator")
            if settings.logging.level != "off":
                _print("plain", f"log: {log_file(settings)}")
        return PromptSession(
            history=PrivateHistory(history),
            completer=CommandCompleter(),
            complete_while_typing=False,
            input_processors=[MaskAuthenticator()],
            bottom_toolbar=self._toolbar,
            style=_STYLE,
        )

    def _stop(self) -> None:
        self._ended = True
        if self._session is not None and self._session.app.is_running:
            self._session.app.exit(exception=EOFError)

    def _toolbar(self) -> str:
        """Return the line below the prompt: the form of the command that is being typed."""
        command = COMMANDS.get(get_app().current_buffer.text.partition(" ")[0].upper())
        if command is not None:
            return folded(command.syntax, _width())
        pending = self._engine.unanswered
        return f"{pending} under way" if pending else "help | TAB completes | Ctrl-D leaves"

    def _handle(self, line: str) -> None:
        first, _, rest = line.strip().partition(" ")
        if first.upper() in {"HELP", "?"}:
            _help(rest.strip())
            return
        if first.upper() == "EXIT":
            _print("bad", "error:", " QUIT or Ctrl-D ends")
            return
        reply = self._engine.handle(encode(line))
        if reply.reason:
            _print("bad", "error:", f" {visible(reply.reason)}")
        if reply.accepted:
            for answer in decode(reply.output).splitlines():
                _print("faint", visible(answer))

    def _wake(self) -> None:
        """Have results shown; for worker threads."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._engine.announce)


def show(finished: FinishedRequest) -> None:
    """Print the result of a request."""
    request = finished.request
    head = f"{request.command} {request.request_id}:"
    if finished.error is not None:
        _print("bad", head, f" error: {visible(finished.error)}")
    else:
        lines = map(visible, result_lines(request, finished.values))
        _print("good", head, "\n  ".join([" ok", *lines]))


def _help(word: str) -> None:
    if word.upper() in {"", "HELP"}:
        _print("plain", help_overview())
    elif text := help_on(word, _width()):
        _print("plain", text)
    else:
        _print("bad", "error:", f" there is no command {quoted(word)}; help lists the commands")


def _width() -> int:
    return shutil.get_terminal_size().columns - 1


def _print(style: str, head: str, rest: str = "") -> None:
    """Print text above the prompt: ``head`` in ``style``, then ``rest``, folded between words."""
    text = folded(head + rest, _width())
    parts = [(f"class:{style}", text[: len(head)]), ("", text[len(head) :])]
    print_formatted_text(FormattedText(parts), style=_STYLE)


# -- results and help in words


def result_lines(request: AsyncRequest, values: Sequence[str]) -> list[str]:
    """Return the values of a request's success in lines for people."""
    if isinstance(request, boinc_commands.QueryBatches):
        return list(_statuses(request.batches, values))
    names = COMMANDS[request.command].returns.split()
    return [
        f"{name}: {_meaning(name, word)}"
        for name, word in zip(names[len(names) - len(values) :], values, strict=True)
    ]


def _meaning(name: str, word: str) -> str:
    known = name == "status" and word in {str(state.value) for state in HTCondorState}
    return f"{word} ({HTCondorState(int(word)).words})" if known else word


def _statuses(batches: tuple[str, ...], words: Sequence[str]) -> Iterator[str]:
    """Describe the values of BOINC_QUERY_BATCHES: server_time {njobs {job status}...}..."""
    server_time, *rest = words
    yield f"server_time: {server_time}"
    for batch in batches:
        njobs = int(rest[0])
        names, statuses = rest[1 : 1 + 2 * njobs : 2], rest[2 : 2 + 2 * njobs : 2]
        rest = rest[1 + 2 * njobs :]
        counts = Counter(statuses)
        summary = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
        yield f"{batch}: {count(njobs, 'job')}{': ' if summary else ''}{summary}"
        if njobs <= LISTED_JOBS:
            wide = max(map(len, names), default=0)
            for name, status in zip(names, statuses, strict=True):
                yield f"  {name:<{wide}}  {status}"


def help_overview() -> str:
    """Return the answer to ``help``: each command on a line, and how to write lines."""
    wide = max(map(len, COMMANDS))
    lines = [f"{name:<{wide}}  {command.summary}" for name, command in COMMANDS.items()]
    lines += [
        f"{'HELP [COMMAND]':<{wide}}  this, or all about a command",
        "",
        "An id is your number for a request, above 0; its result is printed with it.",
        r"Within an argument, write \ before a space or a backslash. NULL: none.",
        "BLAH_*: single jobs (HTCondor 10 and later). BOINC_*: batches of jobs.",
        "TAB completes commands, Ctrl-C discards the line, Ctrl-D leaves.",
    ]
    return "\n".join(lines)


def help_on(word: str, width: int) -> str | None:
    """Return the answer to ``help word``, in lines of ``width`` columns; None: no such command.

    The beginning of a command's name may be left out: PING is BOINC_PING.
    """
    found = (COMMANDS.get(f"{prefix}{word.upper()}") for prefix in PREFIXES)
    command = next(filter(None, found), None)
    return None if command is None else folded(help_text(command), width)


def folded(text: str, width: int) -> str:
    """Return ``text`` in lines of at most ``width`` columns; no word is split."""
    return "\n".join(
        textwrap.fill(
            line,
            max(width, 40),
            subsequent_indent=" " * (len(line) - len(line.lstrip())),
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in text.split("\n")
    )
