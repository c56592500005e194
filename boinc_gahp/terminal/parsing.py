"""Command-line parsers that also hold what documentation and completion are made from.

Every action of the command line is a function ``NAME(options) -> exit status`` with a function
``NAME_parser() -> Parser`` beside it, so that help, manual pages, completion and the tests of the
documentation see the same options. It prints its results and raises errors. Actions of
``local-project`` get their arguments unread, and read them with that parser.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import textwrap
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from boinc_gahp.config.places import TrustedPath, trusted
from boinc_gahp.errors import BadRequest
from boinc_gahp.quantities import SPAN
from boinc_gahp.terminal.output import in_lines
from boinc_gahp.terminal.words import one_line
from boinc_gahp.text import did_you_mean, ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    from boinc_gahp.quantities import Quantity

#: Exit statuses of every command; a parser's own ``statuses`` are added.
STATUSES = {
    0: "success",
    1: "an error; one line on stderr says what is wrong and what to do",
    2: "the command line is wrong",
    130: "interrupted from the keyboard",
}

#: The kind of a value, for completion, by the word that stands for it in the help.
_KINDS = {
    "FILE": "file",
    "FILES": "file",
    "[NAME=]FILE": "file",
    "DIR": "directory",
    "PROJECT": "project",
    "APP": "app",
    "BATCH": "batch",
}

PROGRAM = "boinc_gahp"

_WIDTH = 80
#: Separates an example from its remark.
_REMARK = "  # "

#: What other programs call an action.
_ELSEWHERE = {
    **dict.fromkeys(("cancel", "kill", "stop"), "abort"),
    **dict.fromkeys(("delete", "rm"), "retire"),
    **dict.fromkeys(("ps", "ls", "queue"), "list"),
    "status": "show",
}


class Parser(argparse.ArgumentParser):
    """A parser for the arguments of one action.

    Args:
        command: the words before the arguments: ``batch list``; empty for ``boinc_gahp`` itself.
        description: paragraphs, separated by empty lines; those with an indented line are shown as
            they are, the others are filled.
        examples: command lines, as they are typed; a remark may follow after ``  # ``, and a line
            may continue after a backslash.
        statuses: exit statuses in addition to :data:`STATUSES`, or replacing them.
        usage: instead of argparse's own, without the program's name.

    Attributes:
        command: as given.
        examples: as a tuple.
        statuses: all of them, in order.
    """

    def __init__(
        self,
        command: str,
        description: str,
        *,
        examples: Iterable[str] = (),
        statuses: Mapping[int, str] | None = None,
        usage: str | None = None,
    ) -> None:
        self.command = command
        self.examples = tuple(examples)
        self.statuses = dict(sorted({**STATUSES, **(statuses or {})}.items()))
        super().__init__(
            prog=f"{PROGRAM} {command}".strip(),
            usage=None if usage is None else _usage(command, usage),
            description=_wrapped(description),
            epilog=_epilog(self.examples, self.statuses),
            formatter_class=_Formatter,
            allow_abbrev=False,
            add_help=False,
        )
        self._positionals.title = "arguments"
        self._titled: dict[str, argparse._ActionsContainer] = {}
        self.add_argument("-h", "--help", action="help", help="show this help")

    def takes(self, options: Mapping[str, str], group: str = "", **more: Any) -> Self:
        """Add options and other arguments as :func:`declare` does; return the parser.

        Args:
            options: as there.
            group: the title above them in the help.
            more: as there.
        """
        where: argparse._ActionsContainer = self
        if group:
            where = self._titled.get(group) or self.add_argument_group(group)
            self._titled[group] = where
        declare(where, options, **more)
        return self

    def with_common(self, *, project: bool = False, json: str | None = None) -> Self:
        """Add options that many actions have; return the parser.

        These are ``--config FILE`` and ``--trust-config``: :meth:`read` sets ``options.config``, a
        :class:`TrustedPath` if it is trusted.

        Args:
            project: whether to add ``--project NAME``, too.
            json: the help text of ``--json``, to add that, too.
        """
        if project:
            text = "use the project [projects.NAME] of the settings (default: [project])"
            self.takes({"--project NAME": text})
        text = "also read FILE, instead of $BOINC_GAHP_CONFIG; its values win"
        self.takes({"--config FILE": text})
        text = "use FILE, or that of $BOINC_GAHP_CONFIG, although another user owns it"
        self.takes({"--trust-config": text})
        return self if json is None else self.takes({"--json": json})

    def read(self, arguments: Sequence[str], config: str | None = None) -> argparse.Namespace:
        """Read arguments; options may be anywhere among the others.

        Exits with status 2 if they are wrong, with 0 after printing help.

        Args:
            arguments: the words after the action.
            config: the settings file that was named before it.

        Returns:
            The options; also ``parser``, which can report more errors, and ``typed``, what is given
            here.
        """
        words: list[str] = []
        for word in arguments:
            before = self._option_string_actions.get(words[-1]) if words else None
            # argparse would take a value that begins with a dash for an option.
            if before is not None and before.metavar == "WORDS":
                words[-1] += f"={word}"
            else:
                words.append(word)
        options = self.parse_intermixed_args(words, _Options())
        options.parser, options.typed = self, (arguments, config)
        if "config" in options and options.config is None:
            options.config = config
        if getattr(options, "trust_config", False):
            options.config = trusted(options.config)
        return options

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print the help; argparse's own method is silent if help cannot be written."""
        if file is sys.stdout and file is not None:
            file.write(message)
        else:
            super()._print_message(message, file)

    def error(self, message: str) -> NoReturn:
        """Report an error, with the most similar name, and exit with status 2."""
        found = re.match(r"unrecognized arguments: (-\S+)", message)
        if found:
            options = [word for action in self._actions for word in action.option_strings]
            message += did_you_mean(found[1].partition("=")[0], options)
        found = re.match(r"argument .*: invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if found:
            message += did_you_mean(found[1], re.findall(r"[\w.-]+", found[2]))
        said = f"{self.prog}: {ended(message)} {self.prog} --help tells more"
        # The words were typed or came from a script: they may be anything.
        self.exit(2, f"{in_lines(one_line(said), sys.stderr)}\n")


class _Options(argparse.Namespace):
    """Options, of which ``vars`` has only what the parser takes."""

    __slots__ = ("parser", "typed")


class Group(Parser):
    """A parser for the words before an action: the action's name, or a request for help.

    Args:
        command: as :class:`Parser` has it.
        description: likewise.
        actions: of each action its module, the function there that does it, and its purpose.
        package: where the modules are.
        examples: as :class:`Parser` has it.
        word: the word for an action.
        usage: as :class:`Parser` has it.
    """

    def __init__(
        self,
        command: str,
        description: str,
        actions: Mapping[str, tuple[str, str, str]],
        *,
        package: str,
        examples: Iterable[str] = (),
        word: str = "action",
        usage: str = "ACTION ...",
    ) -> None:
        self.actions = {name: purpose for name, (_, _, purpose) in actions.items()}
        self._places = {name: place for name, (*place, _) in actions.items()}
        self._package = package
        width = max(map(len, actions)) + 2
        lines = (_item(f"  {name:<{width}}", text) for name, text in self.actions.items())
        place = " ".join(filter(None, (PROGRAM, command, word.upper())))
        super().__init__(
            command,
            f"{description}\n\n{word}s:\n{''.join(lines)}\n"
            f"For options and examples: {place} --help",
            examples=examples,
            usage=usage,
        )

    def below(self, name: str) -> Parser:
        """Return the parser of an action."""
        module, function = self._places[name]
        found: Parser = getattr(import_module(f"{self._package}.{module}"), f"{function}_parser")()
        return found

    def act(self, arguments: Sequence[str], config: str | None) -> int:
        """Do the action that the first argument names; return the exit status.

        Of an action that is a group, the function gets both arguments; it may be missing.

        Args:
            arguments: its name, and the words after it.
            config: the settings file that was named before.
        """
        name, *rest = self.chosen(arguments), *arguments[1:]
        module, function = self._places[name]
        parser = self.below(name)
        own = getattr(import_module(f"{self._package}.{module}"), function, None)
        if not isinstance(parser, Group):
            return own(parser.read(rest, config))  # type: ignore[misc, no-any-return]
        return parser.act(rest, config) if own is None else own(rest, config)

    def chosen(self, arguments: Sequence[str]) -> str:
        """Return the action named by the first argument.

        Exits with status 2 if there is none, with 0 after printing help.
        """
        if not arguments:
            self.error(f"an action is missing: {', '.join(self.actions)}")
        first = arguments[0]
        if first in {"-h", "--help"}:
            self.print_help()
            self.exit()
        if first.startswith("-"):
            self.error(f"{first} comes before the action; options must come after it")
        if first not in self.actions:
            meant = _ELSEWHERE.get(first, first)
            near = did_you_mean(meant, self.actions) or f" (there are {', '.join(self.actions)})"
            self.error(f"there is no action {first!r}{near}")
        return first


def common_words(project: str | None, config: str | None) -> list[str]:
    """Return the options that name a project and a settings file, as for another command."""
    words = ["--project", project] if project else []
    words += [] if config is None else ["--config", config]
    return [*words, "--trust-config"] if isinstance(config, TrustedPath) else words


def declare(where: argparse._ActionsContainer, options: Mapping[str, str], **more: Any) -> None:
    """Add options and other arguments.

    Args:
        where: a parser, or a group of its arguments.
        options: the help of each, by what is typed. ``--yes`` is a flag, ``--limit N`` has a value,
            and ``--job JOB ...`` can be repeated; ``BATCH``, ``[DIR]``, ``BATCH ...`` and
            ``[JOB ...]`` are without an option. How a value is read follows from its word; see
            :data:`_READ`.
        more: for argparse, if one is read in another way.
    """
    for typed, text in options.items():
        words = typed.split()
        option = words.pop(0) if typed.startswith("--") else ""
        is_optional, several = typed.startswith("["), "..." in typed
        word = words[0].strip("[]") if words and is_optional else "".join(words[:1])
        how: dict[str, Any] = {"help": text}
        if word:
            how |= {"metavar": word, "type": _READ.get(word, not_empty)}
        if option and not word:
            how["action"] = "store_true"
        elif option and several:
            how["action"] = "append"
        elif not option:
            how["dest"] = word.lower()
            if several or is_optional:
                how["nargs"] = ("*" if is_optional else "+") if several else "?"
            if is_optional:
                how["default"] = None  # else argparse says that it is required
        where.add_argument(*filter(None, (option,)), **{**how, **more})


def not_empty(text: str) -> str:
    """Read a word; an empty one comes from an unset variable, and would mean something else."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def whole_number(least: int, most: int, text: str) -> int:
    """Read a whole number."""
    number = int(text) if re.fullmatch(r"[+-]?[0-9]{1,18}", text) else least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(
            f"{text!r} was given; a number from {least} to {most} is expected"
        )
    return number


def quantity(kind: Quantity) -> Callable[[str], float]:
    """Return a function that reads an option's value."""

    def read(text: str) -> float:
        try:
            return kind.read(text)
        except BadRequest as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


#: How a value is read, by the word that stands for it in the help; any other is a text.
_READ: dict[str, Callable[[str], Any]] = {
    "N": partial(whole_number, 1, 2**31 - 1),
    "SPAN": quantity(SPAN),
    "SECONDS": quantity(SPAN),
    "WORDS": str,
}


def kind_of(action: argparse.Action) -> str | None:
    """Return the kind of an argument's value; None: it is neither a path nor a known name."""
    return _KINDS.get("PROJECT" if action.dest == "project" else str(action.metavar))


def arguments_of(action: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield a parser's arguments, options and others, except hidden ones."""
    yield from (each for each in action._actions if each.help != argparse.SUPPRESS)  # noqa: SLF001


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help in a width that people read well, or that their terminal has."""

    def __init__(self, prog: str) -> None:
        width = shutil.get_terminal_size((_WIDTH, 24)).columns
        super().__init__(prog, max_help_position=26, width=max(40, min(_WIDTH, width)))


def _wrapped(text: str) -> str:
    """Fill the paragraphs that have no layout of their own."""
    return "\n\n".join(
        part.strip("\n") if re.search(r"^ ", part, re.MULTILINE) else textwrap.fill(part, _WIDTH)
        for part in re.split(r"\n{2,}", text.strip("\n"))
    )


def _broken(example: str) -> str:
    """Return an example in lines that fit; for a shell they are one line."""
    if "\\\n" in example or len(example) <= _WIDTH - 2 or _REMARK in example:
        return example.replace("\\\n", "\\\n    ")
    lines = [""]
    one = r"(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+"
    # An option stays with its value, and -- with the word behind it.
    for word in re.findall(rf"(?:--[a-z-]*\s+(?![\s-]))?{one}", example):
        # Two for the margin, four for the next lines' indent, and a backslash after a space.
        if lines[-1] and len(lines[-1]) + 1 + len(word) > _WIDTH - 8:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return " \\\n    ".join(lines)


def _usage(command: str, text: str) -> str:
    begin = "usage: "
    whole = f"{begin}{PROGRAM} {command} {text}".replace("  ", " ")
    lines = textwrap.wrap(
        whole, _WIDTH, subsequent_indent=" " * 4, break_on_hyphens=False, break_long_words=False
    )
    return "\n".join(lines).removeprefix(begin).replace("%", "%%")


def _item(head: str, text: str) -> str:
    return (
        textwrap.fill(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)) + "\n"
    )


def _epilog(examples: Iterable[str], statuses: Mapping[int, str]) -> str:
    lines = "".join(f"  {_broken(line)}\n" for line in examples)
    shown = f"examples:\n{lines}\n" if lines else ""
    listed = "".join(_item(f"  {status:<5}", text) for status, text in statuses.items())
    return f"{shown}exit status:\n{listed}"
