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

WIDTH, HEIGHT = 960, 720
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
    "cli": Box(20, 940, 16, "the command line, one module a subcommand"),
    "daemon": Box(110, 440, 150, "what HTCondor starts: lines in and out"),
    "remote": Box(500, 760, 150, "the Python API of handles"),
    "localproject": Box(785, 940, 150, "a whole project"),
    "gahp": Box(50, 210, 284, "the protocol"),
    "blah": Box(235, 395, 284, "HTCondor's jobs"),
    "bridge": Box(290, 610, 418, "each request as a sequence of RPCs"),
    "ledger": Box(170, 370, 552, "what must outlive us"),
    "rpc": Box(400, 690, 552, "the project's web RPCs"),
    "templates": Box(715, 940, 552, "job templates"),
}

#: Where each arrow goes straight down.
WAYS = {
    ("daemon", "gahp"): 160,
    ("daemon", "blah"): 315,
    ("daemon", "bridge"): 415,
    ("blah", "bridge"): 340,
    ("blah", "ledger"): 265,
    ("remote", "bridge"): 560,
    ("remote", "rpc"): 650,
    ("remote", "templates"): 748,
    ("bridge", "ledger"): 320,
    ("bridge", "rpc"): 450,
    ("bridge", "templates"): 724,
    ("localproject", "templates"): 870,
}
#: How an arrow comes to its way that does not begin above it, and where its number stands: this one
#: leaves bridge on the right, and bows over the arrow from remote to rpc.
BENDS = {("bridge", "templates"): ("M610 462 H643 a7 7 0 0 1 14 0 H714 q10 0 10 10", (616, 454))}

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
    drawn = {pair: number for pair, number in found.items() if pair[0] != "cli"}
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
    count = f"{modules} modules" + ("" if by_cli is None else f" \u00b7 cli {by_cli}")
    yield _text(middle, box.top + 73, count, "font-size='13' fill-opacity='.75'")


def _arrows(drawn: rooms.Arrows) -> Iterator[str]:
    for pair, number in drawn.items():
        x = WAYS[pair]
        top, bottom = BOXES[pair[0]].bottom, BOXES[pair[1]].top
        begin, (left, base) = BENDS.get(pair, (f"M{x} {top}", (x + 8, top + 25)))
        yield (
            f"<path d='{begin} V{bottom - 9}' stroke='currentColor' stroke-width='1.8' "
            "fill='none'/>"
        )
        yield f"<path d='M{x - 6} {bottom - 11} h12 l-6 11 z'/>"
        yield _text(left, base, str(number), "font-size='15' font-weight='600'", "start")


def _floor(floor: dict[str, int]) -> Iterator[str]:
    top = BOXES["rpc"].bottom + 24
    yield (
        f"<rect x='20' y='{top}' width='920' height='40' rx='10' fill-opacity='.04' "
        "stroke='currentColor' stroke-dasharray='5 4'/>"
    )
    shared = ", ".join(f"{name} {floor[name]}" for name in rooms.OPEN)
    others = ", ".join(f"{name} {floor[name]}" for name in rooms.FLOOR if name not in rooms.OPEN)
    words = f"open to all: {shared} \u00b7 for cli alone: {others}"
    yield _text(480, top + 26, words, "font-size='15'")


def _text(x: float, y: float, text: str, style: str, anchor: str = "middle") -> str:
    return f"<text x='{x:g}' y='{y:g}' text-anchor='{anchor}' {style}>{escape(text)}</text>"


if __name__ == "__main__":
    sys.stdout.write(draw(standalone=True))
