"""A job ad's attributes as Python values.

HTCondor's own ``classad2`` parses and evaluates them. Only this module calls it, and turns all its
exceptions into :class:`AdRefused`. Bytes that are not UTF-8 are surrogates in the texts (PEP 383),
as in Python's paths.
"""

from __future__ import annotations

import re

import classad2

from boinc_gahp.errors import GahpError
from boinc_gahp.secret import hide_logins
from boinc_gahp.text import quoted, shorten

#: Characters of an ad outside of texts in quotes; HTCondor sends some hundred. An expression of
#: 400,000 characters overflows the stack of classad2 25.14, and that ends the daemon.
_MAX_CODE = 50_000
#: The largest value of an expression, in characters. Thirty attributes, each ``strcat(a, a)`` of
#: the one before, make 1 GB.
_MAX_VALUE = 1 << 24

#: A text in quotes. One that is not closed goes to the end, so that nothing is scanned twice.
_QUOTED = re.compile(r'"(?:[^"\\]+|\\.|\\\Z)*(?:"|\Z)', re.DOTALL)
#: How many attributes may refer to each other in a row: 4,000 overflow the stack, too.
_MAX_DEPTH = 50
#: What HTCondor does not send, and what could hide expressions from these limits: comments, names
#: in single quotes, and ads inside of the ad.
_HIDING = re.compile(r"/[*/]|'|(?<!\A)\[")
_NAME = re.compile(r"[A-Za-z_]\w*")
_CALL = re.compile(r"[A-Za-z_]\w*\s*\(")
#: Calls of functions whose value is not larger than all their arguments together.
_BOUNDED = re.compile(
    r"(is\w*|strcat|substr|to(upper|lower)|string|int|real|bool|floor|ceiling|round|quantize|pow"
    r"|abs|ifthenelse|stri?cmp|size|member|regexp|sum|avg|min|max|stringlist\w+|time|random)\s*\(",
    re.IGNORECASE,
)
#: A byte that is not UTF-8, with any backslash before it, which has no effect; or an escape.
_ODD_BYTE = re.compile(r"\\?([\udc80-\udcff])|\\.", re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_ESCAPES |= {b"v": b"\v"}

#: A stretch between quotes, a stretch without quotes, or a quote that is not closed.
_STRETCH = re.compile(r"'((?:[^']|'')*)'|([^' \t\n\r]+)|(')")
_SPACE = re.compile(r"[ \t\n\r]+")


class AdRefused(GahpError):
    """The job's owner: the job cannot be accepted with this ad; the text is its HoldReason."""

    code = "BG-AD-REFUSED"


class Attributes:
    """The attributes of a job ad, by names in any case; ``undefined`` counts as absent.

    Raises:
        AdRefused: the text is not an ad.
    """

    def __init__(self, text: str) -> None:
        code = _QUOTED.sub("", text)
        if len(code) > _MAX_CODE:
            raise AdRefused(
                "the job's ad has expressions of more than "
                f"{_MAX_CODE} characters; give its attributes plain values"
            )
        if hiding := _HIDING.search(code.strip()):
            raise AdRefused(f"the job's ad has {hiding[0]} outside of a text in quotes; remove it")
        self._sizes: dict[str, int] = {}
        try:
            if not text.isascii():
                text = _ODD_BYTE.sub(_octal, text)
            self._ad = classad2.ClassAd(text)
        except Exception as error:  # anything that the parser may raise
            raise AdRefused(
                f"the job's ad cannot be read ({shorten(str(error))}): {show(text)}"
            ) from error

    def get(self, name: str) -> object:
        """Return an attribute's value, evaluated; None if it is absent or undefined.

        Raises:
            AdRefused: evaluating it is an error.
        """
        self._check_expression(name)
        try:
            value = self._ad.lookup(name).eval(self._ad)
        except KeyError:
            return None
        except UnicodeDecodeError:
            return self._odd_text(name)
        except Exception as error:  # as above
            raise AdRefused(f"{name} cannot be evaluated: {shorten(str(error))}") from error
        if value is classad2.Value.Undefined:
            return None
        if value is classad2.Value.Error:
            raise AdRefused(f"{name} is an expression whose value is an error: {self._shown(name)}")
        return value

    def _check_expression(self, name: str) -> None:
        """Refuse an expression that could fill the memory or the stack."""
        if self._most_characters(name, _MAX_DEPTH) > _MAX_VALUE:
            raise AdRefused(
                f"{name} is an expression whose value may have more than {_MAX_VALUE} characters; "
                "give it a plain value"
            )

    def _most_characters(self, name: str, depth: int) -> int:
        """Return a number of characters that an attribute's value does not exceed."""
        key = name.lower()
        if key not in self._sizes:
            self._sizes[key] = 0  # for a circle, whose value is an error
            try:
                expression = str(self._ad.lookup(key))
            except KeyError:
                return 0
            code = _QUOTED.sub("", expression)
            for call in _CALL.findall(code):
                if not _BOUNDED.fullmatch(call):
                    raise AdRefused(f"{name} calls {call}); give it a plain value")
            if not depth:
                raise AdRefused(f"{name} is at the end of too many expressions; give plain values")
            used = sum(self._most_characters(word, depth - 1) for word in _NAME.findall(code))
            # A number of few digits can have many as a text.
            self._sizes[key] = 32 * len(code) + len(expression) + used
        return self._sizes[key]

    def text(self, name: str) -> str | None:
        """Return a text; None if it is absent, undefined, empty or only white space.

        Raises:
            AdRefused: it is not a text.
        """
        value = self.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        return as_text(name, value)

    def _odd_text(self, name: str) -> str:
        """Return a text that is not UTF-8; classad2 shows such bytes as octal escapes."""
        try:
            shown = str(self._ad.lookup(name).simplify(self._ad)).strip()
            if not (shown.startswith('"') and shown.endswith('"')):
                raise AdRefused(f"{name} contains bytes that are not UTF-8: {show(shown)}")
            raw = _ESCAPE.sub(_unescape, shown[1:-1].encode())
        except UnicodeError:
            raise AdRefused(f"{name} contains bytes that are not UTF-8") from None
        return raw.decode("utf-8", "surrogateescape")

    def _shown(self, name: str) -> str:
        try:
            return show(str(self._ad.lookup(name)))
        except UnicodeError:
            return "it contains bytes that are not UTF-8"


def as_text(name: str, value: object) -> str:
    """Return ``value`` if it is a text; raises AdRefused with ``name`` otherwise."""
    if not isinstance(value, str):
        raise AdRefused(f"{name} is {show(value)}; a text in quotes is expected")
    return value


def as_word(name: str, value: object) -> str:
    """Return a text without white space around it; raises AdRefused, also if it is not UTF-8."""
    text = as_text(name, value).strip()
    try:
        text.encode()
    except UnicodeError:
        raise AdRefused(
            f"{name} is {show(text)}, which contains bytes that are not UTF-8"
        ) from None
    return text


def split_v2(text: str) -> tuple[str, ...]:
    """Return the words in ``text``, arguments or an environment in HTCondor's V2 syntax.

    White space is between words; single quotes are around what has any.

    Raises:
        ValueError: a quote is not closed; says where it is.
    """
    words = []
    place = 0
    while place < len(text):
        space = _SPACE.match(text, place)
        if space:
            place = space.end()
            continue
        word = []
        while stretch := _STRETCH.match(text, place):
            if stretch[3]:
                raise ValueError(f"the ' in front of {text[place + 1 :][:40]!r} is not closed")
            quoted, bare = stretch[1], stretch[2]
            word.append(bare if quoted is None else quoted.replace("''", "'"))
            place = stretch.end()
        words.append("".join(word))
    return tuple(words)


def show(value: object) -> str:
    """Return ``value`` for an error message: short, on one line, without logins in URLs."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return str(value)
    return quoted(hide_logins(str(value)), 200)


def _octal(found: re.Match[str]) -> str:
    return f"\\{ord(found[1]) - 0xDC00:03o}" if found[1] else found[0]


def _unescape(found: re.Match[bytes]) -> bytes:
    escape = found[1]
    return bytes([int(escape, 8)]) if len(escape) == 3 else _ESCAPES.get(escape, escape)
