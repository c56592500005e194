"""``boinc_gahp completion``: scripts with which shells complete boinc_gahp's command lines.

The scripts are argcomplete's: at each press of the Tab key they run boinc_gahp with the line in its
environment. :func:`answer` answers from the parsers, the settings, and what was submitted from this
machine; it asks no project, and never tells an error. bash and zsh find files without help, with
variables, ``~`` and quotes, which argcomplete would escape; fish needs a list of them.
"""

from __future__ import annotations

import argparse
import os
import re
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boinc_gahp.terminal.parsing import PROGRAM, Group, Parser, arguments_of, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from boinc_gahp.api.manifest_files import SubmittedBatch
    from boinc_gahp.config.settings import Settings

SHELLS = ("bash", "zsh", "fish")

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
Prints a script that lets a shell complete boinc_gahp's commands, options, files, the names of
projects, and of batches and their apps that were submitted from this machine. Store it in one of
these places:

  bash  ~/.local/share/bash-completion/completions/boinc_gahp, or for all users
        /usr/local/share/bash-completion/completions/boinc_gahp
  zsh   _boinc_gahp in a directory of fpath, such as
        /usr/local/share/zsh/site-functions/_boinc_gahp
  fish  ~/.config/fish/completions/boinc_gahp.fish, or for all users
        /etc/fish/completions/boinc_gahp.fish

Bash and zsh can also load it for one session, as in the first example.
"""


def run(options: argparse.Namespace) -> int:
    """Print a script; return 0."""
    if options.shell is None:
        options.parser.error(f"the shell is missing: {', '.join(SHELLS)}")
    print(script(options.shell), end="")
    return 0


def script(shell: str) -> str:
    """Return the script for one of :data:`SHELLS`."""
    from argcomplete.shell_integration import shellcode

    text: str = shellcode([PROGRAM], shell=shell)
    return text + _MORE.get(shell, "")


def answer() -> None:
    """Answer a script's request: write completions of the line in the environment; exit."""
    from argcomplete import autocomplete

    from boinc_gahp.cli import root_parser

    autocomplete(_tree(root_parser(), os.environ["COMP_LINE"]), always_complete_options=False)


def run_parser() -> Parser:
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
    return parser.takes({"[SHELL]": "the shell"}, choices=SHELLS)


def _tree(parser: Parser, line: str) -> argparse.ArgumentParser:
    """Return a parser, with the parsers below it that the line may need."""
    from argcomplete.completers import ChoicesCompleter, DirectoriesCompleter, FilesCompleter

    completers: dict[str | None, Callable[..., Any]] = {
        "project": _projects,
        "app": _app_names,
        "batch": _batch_names,
    }
    if os.environ.get("_ARGCOMPLETE_SHELL") == "fish":
        completers |= {"file": FilesCompleter(), "directory": DirectoriesCompleter()}
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
            parser_class=partial(_below, parser, line),
        )
        for name, text in parser.actions.items():
            below.add_parser(name, help=text)
    return parser


def _below(group: Group, line: str, prog: str, **_: Any) -> argparse.ArgumentParser:
    name = prog.rpartition(" ")[2]
    # Importing all of the commands takes a while.
    return _tree(group.below(name), line) if name in line else argparse.ArgumentParser()


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
    given = getattr(parsed_args, "project", None)
    found = dict(_words(_submitted(parsed_args, given), prefix))
    # Those of other projects, as ``sweep@NAME``.
    for other in _projects(parsed_args) if given is None else ():
        words = _words(_submitted(parsed_args, other), prefix)
        found |= {f"{word}@{other}": told for word, told in words}
    return found


def _app_names(parsed_args: argparse.Namespace, **_: Any) -> dict[str, str]:
    submitted = _submitted(parsed_args, getattr(parsed_args, "project", None))
    names = (batch.app_name for batch in submitted)
    return {name: "app" for name in names if name.isprintable()}


def _submitted(given: argparse.Namespace, named: str | None) -> list[SubmittedBatch]:
    """Return the batches that were submitted from this machine to the project of that name."""
    # An error message in the middle of a line being typed helps nobody.
    with suppress(Exception):
        from boinc_gahp.api.manifest_files import submitted_batches

        settings = _settings(given)
        project = settings.project if named is None else settings.projects[named]
        if project is not None:
            return submitted_batches(settings, project)
    return []


def _settings(given: argparse.Namespace) -> Settings:
    from boinc_gahp.config.layers import load

    config = getattr(given, "config", None)
    return load(None if config is None else str(Path(config).expanduser()))


def _words(batches: Sequence[SubmittedBatch], beginning: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each batch, if it is unambiguous; its id on request.

    A name that looks like an id does not say which is meant.
    """
    for batch in batches:
        name = batch.name
        if beginning[:1].isdigit():
            yield str(batch.id), name if name.isprintable() else "batch"
        elif name and name.isprintable():
            is_plain = not (name.isdigit() or name.startswith(("id:", "name:", "-")))
            yield name if is_plain else f"name:{name}", f"batch {batch.id} of {batch.app_name}"
