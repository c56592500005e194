"""``boinc_gahp completion``: scripts with which shells complete boinc_gahp's command lines.

The scripts are argcomplete's: at each press of the Tab key they run boinc_gahp with the line in its
environment. :func:`answer` answers from the parsers, the settings and the project, within about a
second, and never with an error. bash and zsh find files without help, with variables, ``~`` and
quotes, which argcomplete would escape; fish needs a list of them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from boinc_gahp.terminal import PROGRAM, Group, Parser, arguments_of, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from boinc_gahp.cli.known_apps import KnownApps
    from boinc_gahp.config import ProjectSettings, Settings
    from boinc_gahp.rpc import ClientOptions

SHELLS = ("bash", "zsh", "fish")

#: Seconds: a project's time to answer; the time its answer is used again; and if it does not
#: answer, the greatest age of one to use.
TIMEOUT = 1.0
FRESH = 30.0
OLD = 86400.0
#: Likewise for apps, which change rarely.
FRESH_APPS = 3600.0
OLD_APPS = 30 * 86400.0

#: zsh has no completion to fall back on, as bash has. fish would report an unknown command if it is
#: typed with its path and is not on PATH.
_MORE = {
    "zsh": r"""
_boinc_gahp_files() { (( compstate[nmatches] )) || { compset -P '--[^=]#='; _files } }
if [[ $zsh_eval_context == *func ]]; then
    _boinc_gahp_files
else
    _boinc_gahp() { _python_argcomplete "$@"; _boinc_gahp_files }
    compdef _boinc_gahp boinc_gahp
fi
""",
    "fish": r"""
complete -e -c boinc_gahp
complete -c boinc_gahp -f -n 'command -q boinc_gahp' -a '(__fish_boinc_gahp_complete)'
""",
}

#: Characters of an option's help to show beside it.
_HELP_WIDTH = 60

_DESCRIPTION = """\
Prints a script that lets a shell complete boinc_gahp's commands, options, files, and the names of
projects, apps and batches. Store it in one of these places:

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
    """Print a script; return 0."""
    parser = run_parser(config)
    shell = parser.read(arguments).shell
    if shell is None:
        parser.error(f"the shell is missing: {', '.join(SHELLS)}")
    print(script(shell), end="")
    return 0


def script(shell: str) -> str:
    """Return the script for one of :data:`SHELLS`."""
    from argcomplete.shell_integration import shellcode

    text: str = shellcode([PROGRAM], shell=shell)
    return text + _MORE.get(shell, "")


def answer() -> None:
    """Answer a script's request: write completions of the line in the environment; exit."""
    from argcomplete import autocomplete

    autocomplete(_tree((), os.environ["COMP_LINE"]), always_complete_options=False)


def run_parser(_config: str | None = None) -> Parser:
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
    return parser


def _tree(path: tuple[str, ...], line: str) -> argparse.ArgumentParser:
    """Return the parser at a path, with the parsers below it that the line may need."""
    from argcomplete.completers import ChoicesCompleter, DirectoriesCompleter, FilesCompleter

    from boinc_gahp.cli.commands import parser_at

    # Importing all of the commands takes a while.
    if path and path[-1] not in line:
        return argparse.ArgumentParser()
    completers: dict[str | None, Callable[..., Any]] = {
        "project": _projects,
        "app": _app_names,
        "batch": _batch_names,
    }
    if os.environ.get("_ARGCOMPLETE_SHELL") == "fish":
        completers |= {"file": FilesCompleter(), "directory": DirectoriesCompleter()}
    parser = parser_at(path)
    for each in arguments_of(parser):
        # Options before the command count.
        each.default = argparse.SUPPRESS
        each.help = _short(parser, each)
        completer = completers.get(kind_of(each), ChoicesCompleter({}))
        if each.choices is None:
            each.completer = completer  # type: ignore[attr-defined]
    if isinstance(parser, Group):
        below = parser.add_subparsers(  # type: ignore[call-overload]
            prog=parser.prog,
            parser_class=lambda prog, **_: _tree(tuple(prog.split()[1:]), line),
        )
        for name, text in parser.actions.items():
            below.add_parser(name, help=text)
    return parser


def _short(parser: Parser, each: argparse.Action) -> str:
    """Return the first sentence of an argument's help."""
    text = parser._get_formatter()._expand_help(each) if each.help else ""  # noqa: SLF001
    first = re.split(r"[;:.]\s|\s\(", " ".join(text.split()), maxsplit=1)[0]
    return first if len(first) <= _HELP_WIDTH else first[: _HELP_WIDTH - 1].rstrip() + "…"


def _projects(parsed_args: argparse.Namespace, **_: Any) -> dict[str, str]:
    with suppress(Exception):
        return {name: each.url for name, each in _settings(parsed_args).projects.items()}
    return {}


def _batch_names(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> dict[str, str]:
    # An error message in the middle of a line being typed helps nobody.
    with suppress(Exception):
        settings = _settings(parsed_args)
        project = _project(settings, parsed_args)
        if project is not None:
            return dict(_words(_batches(settings, project), prefix))
    return {}


def _settings(given: argparse.Namespace) -> Settings:
    from boinc_gahp.config import load

    config = getattr(given, "config", None)
    return load(None if config is None else str(Path(config).expanduser()))


def _project(settings: Settings, given: argparse.Namespace) -> ProjectSettings | None:
    named = getattr(given, "project", None)
    return settings.project if named is None else settings.projects[named]


def _words(batches: Iterable[_Batch], beginning: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each batch, if it is unambiguous; its id on request.

    A name that looks like an id, or that several batches have, does not say which is meant.
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
    """Return the project's batches, from the project or from a recent answer of it."""
    rows = _recent(settings, project, "completion", _ask_batches, fresh=FRESH, old=OLD)
    return [_Batch(*row) for row in rows]


def _app_names(parsed_args: argparse.Namespace, **_: Any) -> dict[str, str]:
    with suppress(Exception):
        settings = _settings(parsed_args)
        project = _project(settings, parsed_args)
        if project is not None:
            rows = _recent(settings, project, "apps", _ask_apps, fresh=FRESH_APPS, old=OLD_APPS)
            return {name: title for name, title in rows if name.isprintable()}
    return {}


def remember_apps(settings: Settings, project: ProjectSettings, found: KnownApps) -> None:
    """Keep the names of a project's apps for completion; that they cannot be kept is no error."""
    _remember(_cache(settings, project, "apps"), _app_rows(found))


def _recent(
    settings: Settings,
    project: ProjectSettings,
    kind: str,
    ask: Callable[[ProjectSettings], list[Any]],
    *,
    fresh: float,
    old: float,
) -> list[Any]:
    """Return rows of ``ask``, from the project or from a recent answer of it."""
    from boinc_gahp.files import check_private_file

    path = _cache(settings, project, kind)
    try:
        check_private_file(path)
        age = time.time() - path.stat().st_mtime
        cached = [list(row) for row in json.loads(path.read_text("utf-8"))]
    except (OSError, ValueError, TypeError):
        age, cached = float("inf"), []
    if 0 <= age < fresh:
        return cached
    try:
        with _at_most(TIMEOUT):
            rows = ask(project)
    except Exception:  # noqa: BLE001  (an error means no suggestions)
        return cached if age < old else []
    _remember(path, rows)
    return rows


def _remember(path: Path, rows: list[Any]) -> None:
    from boinc_gahp.files import make_private_directory, write_whole

    with suppress(OSError):
        make_private_directory(path.parent)
        write_whole(path, json.dumps(rows), mode=0o600)


def _ask_batches(project: ProjectSettings) -> list[Any]:
    from boinc_gahp.rpc import WebRpcs

    with WebRpcs(project.url, project.authenticator or "", options=_options(project)) as client:
        rows = client.query_batches()
    found = [_Batch(row.id, row.name, row.state.name.lower()) for row in rows]
    return sorted(found, reverse=True)


def _ask_apps(project: ProjectSettings) -> list[Any]:
    from boinc_gahp.cli.known_apps import known_apps
    from boinc_gahp.rpc import ProjectSite, WebRpcs

    options = _options(project)
    with (
        ProjectSite(project.url, project.authenticator, options=options) as site,
        WebRpcs(project.url, project.authenticator or "", options=options) as client,
    ):
        return _app_rows(known_apps(site, client))


def _app_rows(found: KnownApps) -> list[Any]:
    return [[each.name, " ".join(each.title.split()) or "app"] for each in found.apps]


def _options(project: ProjectSettings) -> ClientOptions:
    from boinc_gahp.rpc import ClientOptions

    return ClientOptions(
        connect_timeout=TIMEOUT,
        read_timeout=TIMEOUT,
        retry_total=0,
        ca_bundle=project.ca_bundle,
        proxy=project.proxy,
    )


def _cache(settings: Settings, project: ProjectSettings, kind: str) -> Path:
    """Return the file that caches answers of a kind, one for each project and account."""
    import hashlib

    from boinc_gahp.config import cache_dir
    from boinc_gahp.secret import Authenticator

    account = project.authenticator or Authenticator("")
    key = f"{project.url} {account.account}"
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return cache_dir(settings) / f"{kind}-{digest}.json"


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raise _TooLate if the block takes longer."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _TooLate

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
