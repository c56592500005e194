"""The directives: each renders one thing from the sources where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from boinc_gahp.terminal.parsing import STATUSES
from boinc_gahp_docs import api, commands, gahp, jsons, picture, references, rooms, rst, settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx


class Rendered(SphinxDirective):
    """Parses the text that :meth:`text` returns, headings included."""

    #: ``:level:``: of the headings; ``:plain:``: without targets, for manual pages.
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        "level": directives.nonnegative_int,
        "plain": directives.flag,
    }

    @property
    def level(self) -> int:
        """The level of headings; a page's title is 0."""
        level: int = self.options.get("level", 1)
        return level

    @property
    def targets(self) -> bool:
        """Whether other pages may refer to what is rendered."""
        return "plain" not in self.options

    def text(self) -> str:
        """Return reStructuredText."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return what the text means."""
        for path in api.sources():
            self.env.note_dependency(path)
        return self.parse_text_to_nodes(self.text(), allow_section_headings=True)


class Commands(Rendered):
    """All commands, or with ``:only: batch`` those of one group."""

    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {
        **(Rendered.option_spec or {}),
        "only": directives.unchanged,
    }

    def text(self) -> str:
        """Return reStructuredText."""
        only = self.options.get("only")
        chosen = [
            parser
            for parser in commands.parsers()
            if parser.command and (only is None or parser.command.split()[0] == only)
        ]
        return commands.render(chosen, self.level, targets=self.targets)


class CommandLists(Rendered):
    """What all commands have: ``exit-statuses``, or those that have others: ``own-statuses``."""

    required_arguments = 1

    def text(self) -> str:
        """Return reStructuredText."""
        if self.arguments[0] == "exit-statuses":
            return commands.statuses(STATUSES)
        return commands.own_statuses(commands.parsers())


class Settings(Rendered):
    """All settings."""

    def text(self) -> str:
        """Return reStructuredText."""
        return settings.render(self.level, targets=self.targets)


class GahpCommands(Rendered):
    """The commands of a dialect: ``common``, ``BOINC`` or ``BLAH``."""

    required_arguments = 1

    def text(self) -> str:
        """Return reStructuredText."""
        return gahp.render_commands(self.arguments[0], self.level)


class HoldCodes(Rendered):
    """The table of hold codes."""

    def text(self) -> str:
        """Return reStructuredText."""
        return gahp.render_hold_codes()


class Api(Rendered):
    """Every public name of a room; ``:first:`` names those that come before the others."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Callable[[str], Any]] | None] = {"first": directives.unchanged}

    def text(self) -> str:
        """Return reStructuredText."""
        return api.render(self.arguments[0], tuple(self.options.get("first", "").split()))


class JsonObject(Rendered):
    """The keys of a JSON object that is made of a dataclass, which is named."""

    required_arguments = 1

    def text(self) -> str:
        """Return reStructuredText."""
        return jsons.render(jsons.named(self.arguments[0]))


class ErrorTree(Rendered):
    """The tree of exceptions."""

    def text(self) -> str:
        """Return reStructuredText."""
        return rst.block(api.error_tree())


class RoomsPicture(SphinxDirective):
    """The picture of the rooms, in the colours of the page."""

    def run(self) -> list[nodes.Node]:
        """Return the picture for HTML, its description for everything else."""
        for path in api.sources():
            self.env.note_dependency(path)
        html = f'<div class="rooms-picture">{picture.draw(standalone=False)}</div>'
        if self.env.app.builder.format == "html":
            return [nodes.raw("", html, format="html")]
        return [nodes.paragraph("", picture.description())]


class RoomsTable(Rendered):
    """The arrows in words and numbers."""

    def text(self) -> str:
        """Return reStructuredText."""
        found = rooms.between_rooms(rooms.arrows())
        lines = [
            f"   ``{room}`` | "
            + ", ".join(
                f"{rst.literal(other)} {number}"
                for (one, other), number in found.items()
                if one == room
            )
            for room in picture.BOXES
            if any(one == room for one, _ in found)
        ]
        return "\n".join(
            [".. csv-table::", "   :header: room | imports", "   :delim: |", "", *lines, ""]
        )


#: Of these, napoleon takes what stands before a colon in the first line for a type.
_VALUES = {"attribute", "data", "property"}
_lines_of_values: dict[str, list[str]] = {}


def _before_napoleon(
    _app: Sphinx, what: str, name: str, _value: Any, _options: Any, lines: list[str]
) -> None:
    lines[:] = api.without_sources(lines)
    if what in _VALUES:
        _lines_of_values[name] = list(lines)


def _after_napoleon(
    _app: Sphinx, what: str, name: str, _value: Any, _options: Any, lines: list[str]
) -> None:
    if what in _VALUES:
        lines[:] = _lines_of_values.pop(name)


def _set_dashes(_app: Sphinx, tree: nodes.document) -> None:
    """Let the dash between a parameter and its explanation be one."""
    for field in tree.findall(nodes.field):
        for text in list(field.findall(nodes.Text)):
            if text == " -- ":
                text.parent.replace(text, nodes.Text(" \u2013 "))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("commands", Commands)
    app.add_directive("command-list", CommandLists)
    app.add_directive("settings", Settings)
    app.add_directive("gahp-commands", GahpCommands)
    app.add_directive("hold-codes", HoldCodes)
    app.add_directive("api", Api)
    app.add_directive("error-tree", ErrorTree)
    app.add_directive("json-object", JsonObject)
    app.add_directive("rooms-picture", RoomsPicture)
    app.add_directive("rooms-table", RoomsTable)
    app.connect("autodoc-process-docstring", _before_napoleon, priority=100)
    app.connect("autodoc-process-docstring", _after_napoleon, priority=900)
    app.connect("doctree-read", _set_dashes)
    app.connect("missing-reference", references.resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
