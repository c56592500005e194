"""The daemon on a terminal: the same commands, with a prompt, history, completion and help.

Except for the requests themselves, everything happens in one thread, that of prompt_toolkit's event
loop. So a result never appears in the middle of an answer or of a line being typed.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from prompt_toolkit import PromptSession, print_formatted_text
from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from boinc_gahp import __version__
from boinc_gahp.config import log_file, named_projects, state_dir
from boinc_gahp.daemon.console import display
from boinc_gahp.daemon.console.completion import CompletionNames, LineCompleter, hint
from boinc_gahp.daemon.console.input import MaskAuthenticator, PrivateHistory, lines_of
from boinc_gahp.daemon.engine import Engine, FinishedRequest
from boinc_gahp.daemon.main import CLOSING, leave, prepare_process
from boinc_gahp.daemon.projects import Projects, Selection
from boinc_gahp.errors import GahpError
from boinc_gahp.gahp import AsyncRequest, LineSplitter, boinc_commands, common_commands, decode
from boinc_gahp.text import count, visible
from boinc_gahp.threads import start

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.config import Settings
    from boinc_gahp.daemon.console.display import ConsoleMessage
    from boinc_gahp.daemon.projects import OpenContext

log = logging.getLogger("boinc_gahp.daemon")

#: Bytes of results kept for RESULTS; they were shown when they came.
KEPT_RESULTS = 50_000_000
#: How many batches of a project are asked for their jobs' names, and the most jobs of such a batch.
LOOKED_INTO = 20
LOOKED_INTO_JOBS = 2000

PROMPT = "boinc_gahp> "
_CONTINUED = "          > "
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
    *,
    open_context: OpenContext | None = None,
    on_settings: Callable[[Settings], object] | None = None,
) -> NoReturn:
    """Talk to the person at the terminal until they leave, then end the process with status 0.

    Args:
        load_settings: as for :func:`boinc_gahp.daemon.main.serve`.
        open_context: for tests; None: the project's web RPCs.
        on_settings: called with the settings before a project is used; here the log is started.
    """
    prepare_process()
    console = Console(Projects(load_settings, open_context, on_settings))
    try:
        # Not asyncio.run: it waits for threads, and one may hang on a dead file server.
        asyncio.new_event_loop().run_until_complete(console.converse())
    except KeyboardInterrupt:
        console.close()
        leave(0)
    except BaseException as error:  # the process ends here, on purpose
        log.critical("the console ends with an error", exc_info=error)
        print(f"boinc_gahp: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        console.close()
        leave(1)
    console.close()
    leave(0)


class _Engine(Engine):
    """An engine that also hands out results that nobody asked for."""

    def __init__(self, projects: Projects, on_result: Callable[[], None]) -> None:
        super().__init__(projects, on_result=on_result)
        self._to_show: list[FinishedRequest] = []
        self._kept_bytes = 0

    @property
    def unanswered(self) -> int:
        """Requests under way: a person need not ask for results that were already shown."""
        return super().unanswered - self.conversation.waiting

    def take_results(self) -> list[FinishedRequest]:
        """Return the results since the last call; the caller shows them as well."""
        taken = super().take_results()
        if not self.conversation.waiting:
            self._kept_bytes = 0
        self._to_show += taken
        self._kept_bytes += sum(len(one.line) for one in taken)
        if self._kept_bytes > KEPT_RESULTS:
            self.conversation.answer(common_commands.Results())
            self._kept_bytes = 0
        return taken

    def to_show(self) -> list[FinishedRequest]:
        """Return the results that were not shown yet."""
        shown, self._to_show = self._to_show, []
        return shown


class Console:
    """A conversation with a person. Create it in the thread that calls :meth:`converse`."""

    def __init__(self, projects: Projects) -> None:
        self._projects = projects
        self._names = CompletionNames()
        self._splitter = LineSplitter()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._engine = _Engine(projects, self._wake)
        self._urls: dict[int, str] = {}
        self._url = ""
        self._ended = False
        self._session: PromptSession[str] | None = None

    async def converse(self) -> None:
        """Greet, then answer lines until end of input, QUIT or a stop signal."""
        self._loop = asyncio.get_running_loop()
        settings = self._settings()
        self._session = self._open_session(settings)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self._loop.add_signal_handler(number, self._stop)
        with patch_stdout(raw=True):
            self._greet(settings)
            while not (self._ended or self._engine.quitting):
                await self._next_line(self._session)
            self._say_farewell()

    # -- beginning and end

    def close(self) -> None:
        """Release HTCondor's jobs, in a few seconds at most."""
        self._projects.close_service(CLOSING)

    def _settings(self) -> Settings | None:
        try:
            settings = self._projects.settings()
        except GahpError as error:
            self._print("bad", "settings:", f" {error}")
            return None
        for why in settings.no_authenticator.values():
            self._print("bad", "settings:", f" {why}")
        self._names = CompletionNames([project.url for _, project in named_projects(settings)])
        if settings.project is not None and settings.project.authenticator is not None:
            self._select(settings.project.url, None)
        return settings

    def _open_session(self, settings: Settings | None) -> PromptSession[str]:
        path = state_dir(settings) / "console_history" if settings else None
        return PromptSession(
            history=PrivateHistory(path),
            completer=LineCompleter(self._names),
            complete_in_thread=True,
            complete_while_typing=False,
            input_processors=[MaskAuthenticator()],
            bottom_toolbar=self._toolbar,
            style=_STYLE,
            enable_open_in_editor=False,
        )

    def _greet(self, settings: Settings | None) -> None:
        log_path = None
        if settings is not None and settings.logging.level != "off":
            log_path = str(log_file(settings))
        width = shutil.get_terminal_size().columns
        self._print("plain", display.greeting(__version__, self._url, log_path, width))

    def _say_farewell(self) -> None:
        self._show_results()
        pending = self._engine.unanswered
        if pending:
            self._print(
                "faint",
                f"{count(pending, 'request')} not finished; those on the project continue",
            )

    def _stop(self) -> None:
        self._ended = True
        if self._session is not None and self._session.app.is_running:
            self._session.app.exit(exception=EOFError)

    # -- lines

    def _toolbar(self) -> str:
        line_hint = hint(get_app().current_buffer.document.text_before_cursor)
        pending = self._engine.unanswered
        return line_hint or (
            f"{pending} under way" if pending else "help | TAB completes | Ctrl-D leaves"
        )

    async def _next_line(self, session: PromptSession[str]) -> None:
        prompt = _CONTINUED if self._splitter.incomplete else PROMPT
        try:
            text = await session.prompt_async(prompt)
        except KeyboardInterrupt:
            self._splitter = LineSplitter()
            return
        except EOFError:
            self._ended = True
            return
        for line in lines_of(text, self._splitter):
            self._handle(line)
            if self._engine.quitting:
                return

    def _handle(self, line: bytes) -> None:
        first, _, rest = decode(line).strip().partition(" ")
        if first.upper() in {"HELP", "?"}:
            self._help(rest.strip())
            return
        reply = self._engine.handle(line)
        self._show_results()
        if reply.reason:
            self._print("bad", "error:", f" {visible(reply.reason)}")
        if not reply.accepted:
            return
        if isinstance(reply.request, AsyncRequest):
            self._urls[id(reply.request)] = self._url
            self._names.note_request(self._url, reply.request)
        elif isinstance(reply.request, boinc_commands.SelectProject):
            self._selected(reply.request)
        for answer in decode(reply.output).splitlines():
            self._print("faint", visible(answer))

    def _help(self, word: str) -> None:
        if word:
            self._say(display.help_on(word, shutil.get_terminal_size().columns))
        else:
            self._print("plain", display.help_overview())

    # -- projects

    def _selected(self, request: boinc_commands.SelectProject) -> None:
        selection = Selection.of(request.url, request.authenticator)
        self._select(selection.url or "", selection)  # the reply says what was wrong with it

    def _select(self, url: str, selection: Selection | None) -> None:
        self._url = url
        self._names.select(url)
        if url:
            learn = partial(_learn, self._projects, self._names, url, selection)
            start(learn, "names")

    # -- results

    def _wake(self) -> None:
        """Have results shown; for worker threads."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take_results)

    def _take_results(self) -> None:
        announcement = self._engine.announce()
        self._show_results()
        for line in decode(announcement).splitlines():
            self._print("faint", line)

    def _show_results(self) -> None:
        for finished in self._engine.to_show():
            url = self._urls.pop(id(finished.request), self._url)
            self._names.note_result(url, finished.request, finished.line)
            self._say(display.result(finished.request, finished.line))

    # -- output

    def _say(self, says: ConsoleMessage) -> None:
        head = f"{says.head} " if says.head else ""
        self._print(says.style, head.rstrip(), head[len(head.rstrip()) :] + "\n".join(says.lines))

    def _print(self, style: str, head: str, rest: str = "") -> None:
        if style == "bad":
            rest = display.folded(head + rest, shutil.get_terminal_size().columns)
            rest = rest.removeprefix(head)
        text = FormattedText([(f"class:{style}", head), ("", rest)])
        print_formatted_text(text, style=_STYLE)


def _learn(
    projects: Projects, names: CompletionNames, url: str, selection: Selection | None
) -> None:
    """Fetch a project's names in a thread of its own; failures are only logged."""
    try:
        context = projects.context(selection)
        batches = sorted(context.cache.batches(), key=lambda batch: -batch.id)
        names.learn(
            url,
            batches=[batch.name for batch in batches],
            apps={batch.app_name for batch in batches},
        )
        for batch in batches[:LOOKED_INTO]:
            if batch.njobs <= LOOKED_INTO_JOBS:
                names.learn(url, jobs=context.cache.job_names(batch.id))
    except GahpError as error:
        log.info("No names for completion: %s", error)
    except Exception:  # completion is only a convenience
        log.exception("no names for completion")
