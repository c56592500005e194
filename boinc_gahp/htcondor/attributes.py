"""A job ad's attributes as Python values: HTCondor's, and what a job asks of BOINC.

HTCondor's own ``classad2`` parses and evaluates them. Only this module calls it, and turns all its
exceptions into :class:`AdRefused`. Bytes that are not UTF-8 are surrogates in the texts (PEP 383),
as in Python's paths.

What a job asks of BOINC is in ``Boinc…`` attributes, or options in ``BatchExtraSubmitArgs``:
``+remote_BoincDelayBound = 86400`` in a submit file arrives as the attribute ``BoincDelayBound``
(``gridmanager-batch.rst``, "The submit ad"); ``batch_extra_submit_args = --delay-bound 86400``
means the same. The attribute wins.
"""

from __future__ import annotations

import math
import re
import shlex
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import classad2

from boinc_gahp.config.settings import FAILED_JOBS, IGNORED
from boinc_gahp.containers.rules import OPTIONS
from boinc_gahp.errors import GahpError
from boinc_gahp.quantities import SIZES
from boinc_gahp.secret import hide_logins
from boinc_gahp.text import quoted, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp.quantities import Size

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
        # An expression could fill the memory or the stack.
        if self._most_characters(name, _MAX_DEPTH) > _MAX_VALUE:
            raise AdRefused(
                f"{name} is an expression whose value may have more than {_MAX_VALUE} characters; "
                "give it a plain value"
            )
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

    @cached_property
    def _options(self) -> dict[str, str]:
        """What ``BatchExtraSubmitArgs`` asks of BOINC; raises AdRefused for an unknown option."""
        text = self.text(EXTRA) or ""
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise AdRefused(f"{EXTRA} is {show(text)}, which cannot be read: {error}") from None
        options: dict[str, str] = {}
        while words:
            word, equals, value = words.pop(0).partition("=")
            if word not in _OPTIONS:
                raise AdRefused(
                    f"{EXTRA} has {show(word)}, which is not an option; the options are "
                    f"{', '.join(_OPTIONS)}"
                )
            if not equals:
                if not words:
                    raise AdRefused(f"{EXTRA} ends with {word}, which needs a value")
                value = words.pop(0)
            options[_OPTIONS[word]] = value
        return options

    def given(self, name: str) -> tuple[str, object] | None:
        """Return the name under which the job gives the value of ``Boinc<name>``, and the value.

        None if the job does not give it, or gives an empty text.
        """
        attribute = f"Boinc{name}"
        value = self.get(attribute)
        if value is None or (isinstance(value, str) and not value.strip()):
            if name not in self._options:
                return None
            return f"{option(name)} in {EXTRA}", self._options[name]
        return attribute, value

    def boinc(self, name: str, default: Any = None) -> Any:
        """Return the value of ``Boinc<name>``, one of :data:`BOINC`; raises AdRefused."""
        given = self.given(name)
        return default if given is None else BOINC[name](*given)

    def split(self, name: str, old: str, separators: str) -> tuple[str, ...]:
        """Return the words of an attribute in HTCondor's V2 syntax.

        Without it, those of its ``old`` form, which has no quotes: the texts between separators.
        """
        text = self.text(name)
        if text is None:
            return tuple(filter(None, re.split(f"[{separators}]+", self.text(old) or "")))
        try:
            return split_v2(text)
        except ValueError as error:
            raise AdRefused(f"{name} is {show(text)}, which cannot be read: {error}") from None

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


# Readers: each returns the value of what is called ``name``, or raises AdRefused.


def as_text(name: str, value: object) -> str:
    """Return ``value`` if it is a text."""
    if not isinstance(value, str):
        raise _expected(name, value, "a text in quotes is")
    return value


def as_word(name: str, value: object) -> str:
    """Return a text in UTF-8 without white space around it."""
    text = as_text(name, value).strip()
    try:
        text.encode()
    except UnicodeError:
        raise AdRefused(
            f"{name} is {show(text)}, which contains bytes that are not UTF-8"
        ) from None
    return text


def positive(name: str, value: object) -> float:
    """Return a number greater than 0."""
    number = _number(value)
    if number is None or number <= 0:
        raise _expected(name, value, "a number greater than 0 is")
    return number


def whole(least: int, most: int, name: str, value: object) -> int:
    """Return a whole number from ``least`` to ``most``."""
    number = _number(value)
    if number is None or not number.is_integer() or not least <= number <= most:
        raise _expected(name, value, f"a whole number from {least} to {most} is")
    return int(number)


def _flag(name: str, value: object) -> bool:
    """Return a truth value, which may be written as a text."""
    word = str(value).strip().lower()
    if word not in {"true", "false"}:
        raise _expected(name, value, "true or false is")
    return word == "true"


def _one_of(choices: Sequence[str], name: str, value: object) -> str:
    """Return one of some words, in any case."""
    word = as_word(name, value).lower()
    if word not in choices:
        raise _expected(name, value, f"one of {', '.join(choices)} is")
    return word


def _some_of(choices: Sequence[str], name: str, value: object) -> set[str]:
    """Return words from ``choices``, which commas or spaces separate."""
    words = set(as_text(name, value).replace(",", " ").lower().split())
    if not words.issubset(choices):
        raise _expected(name, value, f"words among {', '.join(choices)} are")
    return words


def _number(value: object) -> float | None:
    """Return a finite number, which may be written as a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and "_" in value:  # only Python allows it
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _expected(name: str, value: object, what: str) -> AdRefused:
    return AdRefused(f"{name} is {show(value)}; {what} expected")


def attribute_of(size: Size) -> str:
    """Return the name after ``Boinc`` of the attribute for a size."""
    return size.element.title().replace("_", "")


EXTRA = "BatchExtraSubmitArgs"

#: The columns are signed 32-bit numbers.
_MAX_INT = 2**31 - 1

#: What a job can ask of BOINC, by the attributes' names after ``Boinc``, and its readers.
BOINC: dict[str, Callable[[str, object], Any]] = {
    "Project": as_word,
    "App": as_word,
    "RemoteFiles": as_text,
    **{attribute_of(size): positive for size in SIZES},
    "Priority": partial(whole, -(2**31), _MAX_INT),
    "AppVersionNum": partial(whole, 1, _MAX_INT),
    "InputTemplate": as_text,
    "OutputTemplate": as_text,
    "FailedJobs": partial(_one_of, FAILED_JOBS),
    "Image": as_word,
    **{
        each.attribute: _flag if each.is_flag else partial(whole, each.least, each.most)
        for each in OPTIONS.values()
        if each.attribute
    },
    "AllowEnvironment": as_word,
    "Ignore": partial(_some_of, IGNORED),
}


def option(name: str) -> str:
    """Return the option for ``Boinc<name>``: ``--delay-bound`` for ``DelayBound``."""
    return "--" + re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()


_OPTIONS = {option(name): name for name in BOINC}


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
