"""As much of a terminal as the console uses: what a person would see, with all that scrolled by."""

import re

WIDTH = 80

_PIECE = re.compile(
    r"\x1b\[(?P<parameters>[?0-9;]*)(?P<code>[A-Za-z])|\x1b(?:\][^\x07]*\x07|.)|(?P<char>.)",
    re.DOTALL,
)


class Screen:
    """Lines of characters and a cursor; nothing ever scrolls out.

    Attributes:
        rows: all lines so far, each without blanks at its end.
        row: the line that the cursor is in.
    """

    def __init__(self):
        self._cells = [[]]
        self.row = 0
        self._column = 0
        self._wraps = True
        self._rest = ""

    @property
    def rows(self):
        return ["".join(cells).rstrip() for cells in self._cells]

    def text(self, begin=0):
        """Return the lines from ``begin`` on as one, with single spaces; full ones go on."""
        rows = [row if len(row) == WIDTH else f"{row} " for row in self.rows[begin:]]
        return " ".join("".join(rows).split())

    def feed(self, data):
        """Take what was printed."""
        data = self._rest + data
        self._rest = ""
        # An escape sequence may be cut in two.
        tail = re.search(r"\x1b(?:\[[?0-9;]*|\][^\x07]*)?\Z", data)
        if tail:
            data, self._rest = data[: tail.start()], tail[0]
        for piece in _PIECE.finditer(data):
            if piece["char"]:
                self._put(piece["char"])
            elif piece["code"]:
                self._control(piece["parameters"], piece["code"])

    def _put(self, char):
        if char == "\r":
            self._column = 0
        elif char == "\n":
            self._down(1)
        elif char == "\b":
            self._column = max(0, self._column - 1)
        elif char.isprintable():
            self._print(char)

    def _print(self, char):
        if self._column == WIDTH:
            if not self._wraps:
                return
            self._column = 0
            self._down(1)
        cells = self._cells[self.row]
        cells += " " * (self._column + 1 - len(cells))
        cells[self._column] = char
        self._column += 1

    def _down(self, lines):
        self.row += lines
        while self.row >= len(self._cells):
            self._cells.append([])

    def _control(self, parameters, code):
        number = int(parameters) if parameters.isdigit() else 1
        match code:
            case "A":
                self.row = max(0, self.row - number)
            case "B":
                self._down(number)
            case "C":
                self._column = min(WIDTH - 1, self._column + number)
            case "D":
                self._column = max(0, self._column - number)
            case "G":
                self._column = number - 1
            case "K":
                del self._cells[self.row][self._column :]
            case "J":
                del self._cells[self.row][self._column :]
                del self._cells[self.row + 1 :]
            case "h" | "l" if parameters == "?7":
                self._wraps = code == "h"
