"""The command ``boinc_gahp``: the daemon, or one of the commands for people.

Little is imported here, and only the commands import argparse: a gridmanager that starts the daemon
spins on its pipe until it gets the banner (``gahp.rst``, "Start-up", 2). Errors in the settings are
reported in the results of requests, and so in the hold reasons of jobs: a daemon that does not
start leaves jobs idle without any message.
"""

from __future__ import annotations

import errno
import io
import os
import resource
import sys
from typing import TYPE_CHECKING, NoReturn

from boinc_gahp import __version__
from boinc_gahp.cli import COMMANDS, all_parsers, root_parser
from boinc_gahp.errors import GahpError
from boinc_gahp.text import did_you_mean, ended, nearest

if TYPE_CHECKING:
    from boinc_gahp.config.settings import Settings

#: The options before a command.
OPTIONS = ("--config", "--trust-config", "--version", "--help", "-h")

FAILED = 1
USAGE = 2
INTERRUPTED = 130

#: Why writing to a stream fails: nobody reads it, the disk is full, or there is no stream.
_UNWRITTEN = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}

#: What is said before the console's prompt.
_WELCOME = """\
What most people want:
  boinc_gahp batch submit APP ...     send jobs; then batch wait and batch fetch
  boinc_gahp batch run --image ...    let volunteers run your own program
  boinc_gahp check                    check the settings and your account
  boinc_gahp login URL                use a project on which you have an account
  boinc_gahp demo                     see 20 jobs run on this machine
  boinc_gahp local-project init DIR   make a project to play with
  boinc_gahp --help                   all commands

Below is the prompt of the GAHP protocol, which HTCondor uses. Ctrl-D leaves it.
"""


class UsageError(Exception):
    """The command line is wrong."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status.

    0: all is well; 1: an error, described on stderr in a line; 2: the command line is wrong; 130:
    interrupted from the keyboard.
    """
    # A shell asks for completions of a line that somebody types.
    if "_ARGCOMPLETE" in os.environ:
        from boinc_gahp.cli.completion import answer

        answer()
    try:
        try:
            return _run(sys.argv[1:] if argv is None else argv)
        except UsageError as error:
            _complain(f"{ended(str(error))} boinc_gahp --help lists commands and options")
            return USAGE
        except GahpError as error:
            _complain(error.with_code())
            return FAILED
        finally:
            _flush()
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except OSError as error:
        if error.errno not in _UNWRITTEN or error.filename is not None:
            raise
        # The interpreter must not try to write the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        # A reader that has read enough, like "head", need not be told.
        if error.errno != errno.EPIPE:
            _complain(f"the output could not be written completely: {error.strerror}")
        return FAILED


def _flush() -> None:
    """Find out here what cannot be written, not when the interpreter ends."""
    try:
        if sys.stderr is not None:
            sys.stderr.flush()
    except OSError:
        # Nobody can be told, and the exit status has another meaning.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if sys.stdout is not None:
        sys.stdout.flush()


def _run(arguments: list[str]) -> int:
    config: str | None = None
    trust = False
    while arguments:
        first, *arguments = arguments
        option, equals, value = first.partition("=")
        if option == "--config":
            if not equals:
                if not arguments:
                    raise UsageError("--config needs the path of a settings file")
                value, *arguments = arguments
            if not value:
                raise UsageError("the path after --config is empty: is a variable not set?")
            config = value
        elif first == "--trust-config":
            trust = True
        elif first in {"--version", "version"}:
            print(f"boinc_gahp {__version__}")
            return 0
        elif first in {"--help", "-h"}:
            print(root_parser().format_help(), end="")
            return 0
        elif first.startswith("-"):
            raise UsageError(f"there is no option {option}{did_you_mean(option, OPTIONS)}")
        elif first in COMMANDS:
            return _run_command(first, arguments, _named(config, trust=trust))
        elif first == "help":
            arguments = [*arguments, "--help"]
        else:
            raise UsageError(f"there is no command {first!r}{_instead(first, arguments)}")
    return _serve(_named(config, trust=trust))


def _named(config: str | None, *, trust: bool) -> str | None:
    if not trust:
        return config
    from boinc_gahp.config.places import trusted

    found = trusted(config)
    if found is None:
        raise UsageError("--trust-config needs a settings file beside it: --config FILE")
    return found


def _instead(word: str, arguments: list[str]) -> str:
    """Return what to type instead of a command that does not exist; "" if nothing is like it.

    Args:
        word: the word in a command's place.
        arguments: the words after it.
    """
    from boinc_gahp.terminal.output import command_line

    actions: dict[str, list[str]] = {}
    for group, action in (path for path in all_parsers() if len(path) == 2):
        actions.setdefault(action, []).append(group)
    if groups := actions.get(word):
        lines = (command_line(["boinc_gahp", group, word, *arguments]) for group in groups)
        return f"; type: {', or '.join(lines)}"
    if near := did_you_mean(word, COMMANDS):
        return near
    like = nearest(word, actions)
    return f"; did you mean boinc_gahp {actions[like][0]} {like}?" if like else ""


def _serve(config: str | None) -> NoReturn:
    from boinc_gahp.daemon.main import forbid_core_dumps

    forbid_core_dumps()

    def load_settings() -> Settings:
        from boinc_gahp.config.layers import load

        return load(config)

    logged = set()

    def load_or_complain() -> Settings:
        try:
            return load_settings()
        except GahpError as error:
            # There is no log yet: the settings would say where it is.
            if str(error) not in logged:
                logged.add(str(error))
                _complain(str(error))
            raise

    def start_log(settings: Settings) -> None:
        from boinc_gahp import logs

        logs.start(settings)

    if os.isatty(0) and os.isatty(1):
        from boinc_gahp.daemon.console import run_console

        print(_WELCOME)
        run_console(load_settings, start_log)
    from boinc_gahp.daemon.main import serve

    serve(load_or_complain, start_log)


def _run_command(name: str, arguments: list[str], config: str | None) -> int:
    import logging

    _make_streams_fit()
    # A core file would contain authenticators. Programs that a command starts may allow them again.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # Without any handler, logging would print warnings among the output.
    logging.getLogger().addHandler(logging.NullHandler())
    return root_parser().act([name, *arguments], config)


def _make_streams_fit() -> None:
    """Make sure that all three streams exist, and that the output streams take any text."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            # A user who closes one (>&-) does not want it; no other file must take its place.
            mode = "w" if number else "r"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115
        elif number and isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a name can still show the rest.
            stream.reconfigure(errors="backslashreplace")


def _complain(text: str) -> None:
    from boinc_gahp.terminal.output import complain

    complain(text)
