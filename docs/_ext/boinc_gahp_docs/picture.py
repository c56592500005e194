"""The picture of the rooms: boxes, and arrows for what they import, as SVG.

Where a box stands is chosen by hand, so that arrows go straight down and hardly cross. What it
says, and which arrows there are, comes from the source; a room or an arrow that has no place here
raises.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from boinc_gahp_docs import rooms

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

WIDTH, HEIGHT = 960, 876
_TALL = 88


@dataclass(frozen=True, slots=True)
class Box:
    """A room: the left and right edge, the top, and what it is for."""

    left: int
    right: int
    top: int
    text: str

    @property
    def bottom(self) -> int:
        """The lower edge."""
        return self.top + _TALL


BOXES = {
    "cli": Box(20, 560, 16, "the command line, a module or a package for each command"),
    "page": Box(580, 745, 16, "batches in a browser"),
    "workflows": Box(765, 940, 16, "for Snakemake"),
    "daemon": Box(20, 350, 150, "what HTCondor starts: lines in and out"),
    "api": Box(385, 940, 150, "the Python API of handles"),
    "functions": Box(450, 630, 284, "Python functions"),
    "localproject": Box(650, 860, 284, "a whole BOINC project"),
    "gahp": Box(20, 180, 284, "the protocol"),
    "htcondor": Box(205, 415, 284, "HTCondor 10 and later"),
    "fetch": Box(205, 615, 418, "outputs, from the project to their places"),
    "submit": Box(80, 690, 552, "batches: validated, staged, sent, asked about, aborted"),
    "ledger": Box(20, 200, 686, "what is kept on disk"),
    "containers": Box(215, 395, 686, "any program: its files"),
    "rpc": Box(410, 590, 686, "the project's web RPCs"),
    "templates": Box(605, 765, 686, "job templates"),
    "terminal": Box(780, 940, 686, "printed output"),
}

#: Where each arrow goes straight down.
WAYS = {
    ("workflows", "api"): 850,
    ("page", "api"): 662,
    ("daemon", "gahp"): 100,
    ("daemon", "htcondor"): 280,
    ("htcondor", "fetch"): 310,
    ("api", "fetch"): 432,
    ("api", "functions"): 540,
    ("api", "terminal"): 900,
    ("fetch", "submit"): 410,
    ("submit", "ledger"): 140,
    ("submit", "containers"): 305,
    ("submit", "rpc"): 500,
    ("submit", "templates"): 648,
    ("localproject", "templates"): 728,
    ("localproject", "terminal"): 820,
}

_STYLE = """\
  .rooms { color: #1c2430; background: #fff; }
  @media (prefers-color-scheme: dark) { .rooms { color: #dde3ea; background: #14181e; } }
"""
_FONT = "font-family='system-ui, -apple-system, &quot;DejaVu Sans&quot;, sans-serif'"


def draw(*, standalone: bool) -> str:
    """Return the picture as SVG.

    Args:
        standalone: whether it is a file of its own, which knows light and dark by itself; else it
            is part of a page and has the colour of the text around it.

    Raises:
        LookupError: the source has a room or an arrow that the picture has no place for.
    """
    modules = rooms.rooms()
    everything = rooms.arrows()
    found = rooms.between_rooms(everything)
    drawn = {pair: found[pair] for pair in rooms.direct(found) if pair[0] != "cli"}
    by_cli = {pair[1]: number for pair, number in everything.items() if pair[0] == "cli"}
    _must_fit(modules, {*BOXES, *rooms.FLOOR}, "room")
    _must_fit(drawn, WAYS, "arrow")
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' class='rooms' viewBox='0 0 {WIDTH} {HEIGHT}' "
        f"role='img' aria-labelledby='rooms-title rooms-text' {_FONT} fill='currentColor'>",
        "<title id='rooms-title'>The rooms of boinc_gahp and what they import</title>",
        f"<desc id='rooms-text'>{escape(description())}</desc>",
    ]
    if standalone:
        lines.append(f"<style>\n{_STYLE}</style>")
    lines += _arrows(drawn)
    for name, box in BOXES.items():
        lines += _box(name, box, modules[name], by_cli.get(name))
    lines += _floor({name: modules[name] for name in rooms.FLOOR})
    return "\n".join([*lines, "</svg>", ""])


def description() -> str:
    """Return the arrows in words."""
    pairs = rooms.between_rooms(rooms.arrows())
    imports = [
        f"{room} imports {', '.join(other for one, other in pairs if one == room)}"
        for room in BOXES
        if any(one == room for one, _ in pairs)
    ]
    return "; ".join(imports) + f". Open to all: {', '.join(rooms.OPEN)}."


def _must_fit(there: Iterable[object], placed: Container[object], what: str) -> None:
    homeless = [each for each in there if each not in placed]
    if homeless:
        raise LookupError(f"the picture has no place for the {what} {homeless[0]}")


def _box(name: str, box: Box, modules: int, by_cli: int | None) -> Iterator[str]:
    middle = (box.left + box.right) / 2
    size = f"x='{box.left}' y='{box.top}' width='{box.right - box.left}' height='{_TALL}' rx='10'"
    yield f"<rect {size} fill-opacity='.07' stroke='currentColor' stroke-width='1.6'/>"
    yield _text(middle, box.top + 29, name, "font-size='19' font-weight='600'")
    yield _text(middle, box.top + 51, box.text, "font-size='14.5'")
    count = f"{modules} module{'' if modules == 1 else 's'}" + (
        "" if by_cli is None else f" \u00b7 cli {by_cli}"
    )
    yield _text(middle, box.top + 73, count, "font-size='13' fill-opacity='.75'")


def _arrows(drawn: rooms.Arrows) -> Iterator[str]:
    for pair, number in drawn.items():
        x = WAYS[pair]
        top, bottom = BOXES[pair[0]].bottom, BOXES[pair[1]].top
        yield (
            f"<path d='M{x} {top} V{bottom - 9}' stroke='currentColor' stroke-width='1.8' "
            "fill='none'/>"
        )
        yield f"<path d='M{x - 6} {bottom - 11} h12 l-6 11 z'/>"
        yield _text(x + 8, top + 25, str(number), "font-size='15' font-weight='600'", "start")


def _floor(floor: dict[str, int]) -> Iterator[str]:
    top = BOXES["rpc"].bottom + 24
    yield (
        f"<rect x='20' y='{top}' width='920' height='62' rx='10' fill-opacity='.04' "
        "stroke='currentColor' stroke-dasharray='5 4'/>"
    )
    shared = ", ".join(_counted(name, floor[name]) for name in rooms.OPEN)
    others = ", ".join(
        _counted(name, floor[name]) for name in rooms.FLOOR if name not in rooms.OPEN
    )
    yield _text(480, top + 26, f"open to all: {shared}", "font-size='14'")
    yield _text(480, top + 48, f"for cli alone: {others}", "font-size='14'")


def _counted(name: str, modules: int) -> str:
    return name if modules == 1 else f"{name} {modules}"


def _text(x: float, y: float, text: str, style: str, anchor: str = "middle") -> str:
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' {style}>{escape(text)}</text>"


if __name__ == "__main__":
    sys.stdout.write(draw(standalone=True))
