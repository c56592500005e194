"""Reads what a call returned. It comes from a stranger's computer, and may be anything.

``result.json`` is an object: ``format`` (1), ``call`` (which call it is of) and one of ``value``,
``raised`` (``type``, ``message`` and ``traceback``) and ``problem`` (why there is no value, in
words; with ``raised`` if there is more to tell). A value is JSON. What JSON lacks is an object with
a key ``!``, its kind, and ``of``:

==================================  ============================================================
tuple, set, frozenset               a list
dict                                pairs of keys and values, if a key is no text
int                                 hexadecimal digits, beyond 64 bits
float                               ``nan``, ``inf`` or ``-inf``
complex                             its two parts
bytes, bytearray                    base64; likewise ``str`` if it is no valid Unicode
date, datetime, time                ISO 8601; with ``fold``
timedelta                           days, seconds and microseconds
array, scalar                       the name of a file, ``.npy``
table                               the name of a file of CSV; with ``columns`` (``name``,
                                    ``type``, and the numbers of the rows whose cell is
                                    ``missing``), ``rows``, ``index`` (whether the first column is
                                    the index), ``series`` (whether it is one)
path                                the name of a file or directory
==================================  ============================================================

The files are beside it. Nothing is unpickled, no name leads out of that
directory, and sizes are compared before anything is read into memory.
"""

from __future__ import annotations

import base64
import csv
import datetime
import json
import math
import os
import re
import stat
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from boinc_gahp.functions._tables import MOST_TABLE_BYTES, read_table, whole_number
from boinc_gahp.functions.runner import (
    DEEPEST,
    FORMAT,
    MOST_BYTES,
    MOST_CONTAINERS,
    MOST_MESSAGE,
    MOST_TRACEBACK,
    RESULT,
    TAG,
)
from boinc_gahp.text import printable, quoted, shorten, size, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

#: The most bytes of an array's or table's file that are read into memory.
MOST_FILE_BYTES = 1_000_000_000
_MOST_NAME = 200
#: So many keys of a dictionary, or elements of a set, may have the same hash.
_MOST_ALIKE = 100
_BRACKETS = re.compile(r'[\[\]{}"]|\\.', re.DOTALL)


#: What a value of a wrong form raises in the types and libraries that it is given to.
_WRONG = (
    *(ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError),
    *(OSError, MemoryError, csv.Error),
)


class WrongResult(Exception):
    """A result that is not what the runner writes, or that is of another call; says why."""


@dataclass(frozen=True, slots=True)
class Raised:
    """What a call ended with instead of a value. All texts can be shown on a terminal.

    Attributes:
        type_name: the exception's type; empty if the function raised none.
        message: its message, or why there is no value.
        traceback: as Python there printed it; may have many lines, or none.
    """

    type_name: str
    message: str
    traceback: str


def read_result(directory: Path, call: str) -> tuple[Any, Raised | None]:
    """Return the value of a call, or what it raised.

    Args:
        directory: what came back, with ``result.json``.
        call: the key of the call.

    Raises:
        WrongResult: the result is damaged, forged, or of another call; or it needs a library that
            is not installed here.
    """
    document = _document(directory / RESULT)
    if document.get("format") != FORMAT:
        raise WrongResult(
            f"it has the format {_shown(document.get('format'))}, and this version reads {FORMAT}"
        )
    if document.get("call") != call:
        raise WrongResult("it is the result of another call")
    problem, raised = document.get("problem"), document.get("raised")
    if problem is None and raised is None:
        if "value" not in document:
            raise WrongResult("it has no value")
        decoder = Decoder(directory)
        try:
            return decoder.decode(document["value"]), None
        except WrongResult:
            raise
        except _WRONG as error:
            raise WrongResult(f"its value cannot be read ({shorten(str(error), 200)})") from error
    return None, _raised(problem, raised)


def _document(path: Path) -> dict[str, Any]:
    with _opened(path, MOST_BYTES) as file:
        content = file.read(MOST_BYTES + 1)
    try:
        text = content.decode()
        _check_brackets(text)
        document = json.loads(text, parse_int=whole_number, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WrongResult(f"it is not the JSON that was expected ({error})") from error
    if not isinstance(document, dict):
        raise WrongResult("it is not an object of JSON")
    return document


def _check_brackets(text: str) -> None:
    """Refuse many or deep lists and objects, which would take much memory or the stack."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = containers = 0
    in_text = False
    for found in _BRACKETS.finditer(text):
        character = found[0]
        if character == '"':
            in_text = not in_text
        elif in_text or len(character) > 1:
            continue
        elif character in "[{":
            depth += 1
            containers += 1
            # A tagged value is an object with a list.
            if depth > 3 * DEEPEST or containers > 3 * MOST_CONTAINERS:
                raise ValueError("too many lists or objects, or too deep in each other")
        else:
            depth -= 1


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _raised(problem: Any, raised: Any) -> Raised:
    told = raised if isinstance(raised, dict) else {}
    kind, message = (str(told.get(key, "")) for key in ("type", "message"))
    if isinstance(problem, str):
        detail = printable(f"{kind}: {message}"[:MOST_MESSAGE]) if told else ""
        kind, message = "", f"{problem}: {detail}" if detail else problem
    if not kind.strip() and not message.strip():
        message = "the volunteer's computer did not say why"
    return Raised(
        printable(kind[:_MOST_NAME]),
        _lines(message, MOST_MESSAGE),
        _lines(str(told.get("traceback", "")), MOST_TRACEBACK),
    )


def _lines(text: str, most: int) -> str:
    """Return lines that cannot control a terminal."""
    return "\n".join(visible(line.expandtabs()) for line in text[: 2 * most].split("\n"))


class Decoder:
    """Makes values of JSON.

    Args:
        files: the directory of the files.
    """

    def __init__(self, files: Path) -> None:
        self._files = files

    def decode(self, found: Any) -> Any:  # noqa: PLR0911  (a line for each kind of value)
        """Return the value that JSON stands for.

        Raises:
            WrongResult: it is not of the form above.
            ValueError, TypeError, and others: likewise.
        """
        if isinstance(found, list):
            return [self.decode(each) for each in found]
        if not isinstance(found, dict):
            return found
        if TAG not in found:
            return {key: self.decode(each) for key, each in found.items()}
        kind, content = found[TAG], found.get("of")
        if kind in _SIMPLE:
            return _SIMPLE[kind](content)
        if kind == "tuple":
            return tuple(self.decode(each) for each in _list(content))
        if kind in _SETS:
            return _SETS[kind](_spread([self.decode(each) for each in _list(content)]))
        if kind == "dict":
            pairs = [_list(each, 2) for each in _list(content)]
            keys = _spread([self.decode(key) for key, _ in pairs])
            return dict(zip(keys, (self.decode(each) for _, each in pairs), strict=True))
        if kind == "complex":
            real, imaginary = (self.decode(each) for each in _list(content, 2))
            return complex(real, imaginary)
        if kind in ("datetime", "time"):
            fold = 1 if found.get("fold") == 1 else 0
            moment = getattr(datetime, kind).fromisoformat(_str(content))
            return moment.replace(fold=fold)
        if kind in ("array", "scalar"):
            array = self._array(_str(content))
            return array if kind == "array" else array[()]
        if kind == "table":
            return self._table(_str(content), found)
        if kind == "path":
            return self._path(_str(content))
        raise WrongResult(f"its value has an unknown kind, {_shown(kind)}")

    def _path(self, name: str) -> Path:
        # A single part of a path leads nowhere else, and a link is not followed.
        path = self._files / name
        mode = 0
        if name not in ("", ".", "..") and not {"/", "\0"} & set(name):
            with suppress(OSError):
                mode = path.lstat().st_mode
        if not mode:
            raise WrongResult(f"the file {quoted(name)} of its value did not come back")
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise WrongResult(f"{quoted(name)} is neither a file nor a directory")
        return path

    def _array(self, name: str) -> Any:
        path = self._path(name)
        numpy = _library("numpy", "an array", path)
        with _opened(path, MOST_FILE_BYTES) as file:
            nbytes = os.fstat(file.fileno()).st_size
            try:
                version = numpy.lib.format.read_magic(file)
                read = {
                    (1, 0): numpy.lib.format.read_array_header_1_0,
                    (2, 0): numpy.lib.format.read_array_header_2_0,
                }[version]
                shape, _, dtype = read(file)
            except Exception as error:
                raise WrongResult(f"{quoted(name)} is no array of numpy") from error
            if dtype.hasobject:
                raise WrongResult(f"{quoted(name)} has pickled objects, which are not read")
            claimed = math.prod(shape) * dtype.itemsize
            if min(shape, default=0) < 0 or dtype.itemsize == 0:
                raise WrongResult(f"{quoted(name)} has an impossible shape")
            if claimed != nbytes - file.tell():
                raise WrongResult(
                    f"{quoted(name)} says that it has {claimed:,} bytes of numbers, and has "
                    f"{nbytes - file.tell():,}"
                )
            file.seek(0)
            try:
                return numpy.load(file, allow_pickle=False)
            except Exception as error:
                raise WrongResult(f"{quoted(name)} is no array of numpy") from error

    def _table(self, name: str, found: dict[str, Any]) -> Any:
        path = self._path(name)
        pandas = _library("pandas", "a table", path)
        with _opened(path, MOST_TABLE_BYTES) as file:
            return read_table(pandas, file, found)


@contextmanager
def _opened(path: Path, most_bytes: int) -> Iterator[BinaryIO]:
    """Lend a file that is no link, no pipe, and not too large."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise WrongResult(f"{quoted(path.name)} cannot be read: {error.strerror}") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise WrongResult(f"{quoted(path.name)} is no file")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > most_bytes:
            raise WrongResult(
                f"{quoted(path.name)} has {size(status.st_size)}, and no more than "
                f"{size(most_bytes)} are read into memory"
            )
        yield file


def _library(name: str, what: str, path: Path) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise WrongResult(
            f"its value is {what}, and {name} is not installed here: pip install {name}, and ask "
            f"again; it is in the file {path}"
        ) from error


def _list(found: Any, length: int | None = None) -> list[Any]:
    if not isinstance(found, list) or (length is not None and len(found) != length):
        raise WrongResult(f"its value has {_shown(found)} where a list was expected")
    return found


def _str(found: Any) -> str:
    if not isinstance(found, str):
        raise WrongResult(f"its value has {_shown(found)} where a text was expected")
    return found


def _spread(keys: list[Any]) -> list[Any]:
    """Return keys; refuse many with the same hash: a set of them takes hours.

    Hashes of numbers are known to everybody, and so are those of tuples of numbers.
    """
    alike = Counter(map(hash, keys))
    if max(alike.values(), default=0) > _MOST_ALIKE:
        raise WrongResult("its value has too many keys or elements with the same hash")
    return keys


def _shown(found: Any) -> str:
    return quoted(found) if isinstance(found, str) else f"a {type(found).__name__}"


def _raw(content: Any) -> bytes:
    return base64.b64decode(_str(content), validate=True)


def _timedelta(content: Any) -> datetime.timedelta:
    days, seconds, microseconds = _list(content, 3)
    return datetime.timedelta(days, seconds, microseconds)


def _special(content: Any) -> float:
    if content not in ("nan", "inf", "-inf"):
        raise WrongResult("its value has a wrong number")
    return float(content)


_SIMPLE: dict[Any, Callable[[Any], Any]] = {
    "int": lambda content: int(_str(content), 16),
    "float": _special,
    "str": lambda content: _raw(content).decode("utf-8", "surrogatepass"),
    "bytes": _raw,
    "bytearray": lambda content: bytearray(_raw(content)),
    "date": lambda content: datetime.date.fromisoformat(_str(content)),
    "timedelta": _timedelta,
}
_SETS: dict[Any, Callable[[Any], Any]] = {"set": set, "frozenset": frozenset}
