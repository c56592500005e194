"""``boinc_gahp completion``: scripts with which shells complete boinc_gahp's command lines.

The scripts ask it back, with options that help does not show, for what only the settings and the
project can tell: names of projects and of batches, each on a line with a tab and a text after it.
Whoever presses the Tab key gets an answer within about a second, and no error.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from boinc_gahp.cli.parsing import Parser

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path
    from types import FrameType

    from boinc_gahp.config import ProjectSettings, Settings

SHELLS = ("bash", "zsh", "fish")

#: Seconds that a project has to answer; for so long its answer is used again; and if it does not
#: answer, an older one.
PATIENCE = 1.0
FRESH = 30.0
OLD = 86400.0

_DESCRIPTION = """\
Prints a script that lets a shell complete boinc_gahp's commands, options, files, and the names of
projects and batches. Store it in one of these places:

  bash  ~/.local/share/bash-completion/completions/boinc_gahp, or for all users
        /usr/local/share/bash-completion/completions/boinc_gahp
  zsh   _boinc_gahp in a directory of fpath, such as
        /usr/local/share/zsh/site-functions/_boinc_gahp
  fish  ~/.config/fish/completions/boinc_gahp.fish, or for all users
        /etc/fish/completions/boinc_gahp.fish

Bash and zsh can also load it for one session, as in the first example.
"""


class _Batch(NamedTuple):
    id: int
    name: str
    state: str


class _TooLate(Exception):
    """The project has not answered in time."""


def run(arguments: list[str], config: str | None) -> int:
    """Print a script, or names; return 0."""
    parser = run_parser(config)
    options = parser.read(arguments)
    if options.projects is not None or options.batches is not None:
        # An error in the middle of a line that somebody types helps nobody.
        with suppress(Exception):
            for word, text in _asked(options):
                print(f"{word}\t{text}")
        return 0
    if options.shell is None:
        parser.error(f"the shell is missing: {', '.join(SHELLS)}")
    print(script(options.shell), end="")
    return 0


def script(shell: str) -> str:
    """Return the script for one of :data:`SHELLS`."""
    from boinc_gahp.cli.commands import all_parsers
    from boinc_gahp.cli.shells import commands_of

    module = import_module(f"boinc_gahp.cli.shells_{shell}")
    text: str = module.script(commands_of(all_parsers()))
    return text


def run_parser(config: str | None = None) -> Parser:
    """Return the parser of the command's arguments."""
    parser = Parser(
        "completion",
        _DESCRIPTION,
        examples=(
            "source <(boinc_gahp completion bash)",
            "boinc_gahp completion zsh > /usr/local/share/zsh/site-functions/_boinc_gahp",
            "boinc_gahp completion fish > ~/.config/fish/completions/boinc_gahp.fish",
        ),
        usage=f"{{{','.join(SHELLS)}}}",
    )
    parser.add_argument("shell", choices=SHELLS, nargs="?", metavar="SHELL", help="the shell")
    for option in ("--projects", "--batches"):
        parser.add_argument(option, metavar="BEGINNING", help=argparse.SUPPRESS)
    for option in ("--config", "--project"):
        default = config if option == "--config" else None
        parser.add_argument(option, default=default, help=argparse.SUPPRESS)
    return parser


def _asked(options: argparse.Namespace) -> Iterable[tuple[str, str]]:
    from boinc_gahp.config import load

    settings = load(options.config)
    if options.projects is not None:
        return [(name, project.url) for name, project in settings.projects.items()]
    named = options.project
    project = settings.project if named is None else settings.projects.get(named)
    if project is None:
        return []
    return _words(_batches(settings, project), options.batches)


def _words(batches: Iterable[_Batch], beginning: str) -> Iterator[tuple[str, str]]:
    """Yield what each batch can be called: by its name, where that is clear; by its id on request.

    A name that looks like an id, or that several have, does not say which batch is meant.
    """
    batches = list(batches)
    names = [batch.name for batch in batches]
    for batch in batches:
        name = batch.name
        if beginning[:1].isdigit():
            yield str(batch.id), f"{name}, {batch.state}" if name.isprintable() else batch.state
        elif name and name.isprintable() and names.count(name) == 1:
            is_plain = not (name.isdigit() or name.startswith(("id:", "name:", "-")))
            yield name if is_plain else f"name:{name}", f"batch {batch.id}, {batch.state}"


def _batches(settings: Settings, project: ProjectSettings) -> list[_Batch]:
    """Return the project's batches, as it tells them now or has told them lately."""
    from boinc_gahp.files import check_private_file, make_private_directory

    path = _cache(settings, project)
    try:
        check_private_file(path)
        told = time.time() - path.stat().st_mtime
        kept = [_Batch(*row) for row in json.loads(path.read_text("utf-8"))]
    except (OSError, ValueError, TypeError):
        told, kept = float("inf"), []
    if 0 <= told < FRESH:
        return kept
    try:
        with _at_most(PATIENCE):
            batches = _ask(project)
    except Exception:  # noqa: BLE001  (whatever it is: there is no answer)
        return kept if told < OLD else []
    from boinc_gahp.files import write_whole

    with suppress(OSError):
        make_private_directory(path.parent)
        write_whole(path, json.dumps(batches), mode=0o600)
    return batches


def _ask(project: ProjectSettings) -> list[_Batch]:
    from boinc_gahp.rpc import ClientOptions, WebRpcs

    options = ClientOptions(
        connect_timeout=PATIENCE,
        read_timeout=PATIENCE,
        retry_total=0,
        ca_bundle=project.ca_bundle,
        proxy=project.proxy,
    )
    with WebRpcs(project.url, project.authenticator or "", options=options) as client:
        rows = client.query_batches()
    found = [_Batch(row.id, row.name, row.state.name.lower()) for row in rows]
    return sorted(found, reverse=True)


def _cache(settings: Settings, project: ProjectSettings) -> Path:
    """Return the file that keeps the answer, one for each project and account."""
    import hashlib

    from boinc_gahp.config import cache_dir
    from boinc_gahp.secret import Authenticator

    account = project.authenticator or Authenticator("")
    key = f"{project.url} {account.account}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return cache_dir(settings) / f"completion-{digest}.json"


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise _TooLate in what takes longer."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
