"""Runs one call of a Python function in a container, and writes what it returned.

This file travels with the job. It needs Python 3.8 and the standard library, and imports nothing
else of boinc_gahp. The value becomes ``result.json`` in the directory ``returned``, and files
beside it; how, is described in :mod:`boinc_gahp.functions.values`, which reads them.

Usage: ``python3 boinc_gahp_call.py CALL PYTHON FUNCTION ARGUMENTS``, where CALL identifies the
call, PYTHON is the version that pickled the function, FUNCTION a file, and ARGUMENTS a file or,
after ``base64:``, the pickled arguments.
"""

from __future__ import annotations

import base64
import csv
import dataclasses
import datetime
import functools
import importlib
import inspect
import json
import linecache
import math
import pickle
import shutil
import sys
import traceback
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: The directory that every call has as its only output, and the file that is always in it.
RETURNED = "returned"
RESULT = "result.json"
#: Packages that the image may lack; a zip archive.
PACKAGES = "cloudpickle.zip"
#: In front of arguments on the command line.
INLINE = "base64:"

#: Changes whenever older versions could not read a result.
FORMAT = 1
#: The key of an object of JSON that is not a dictionary.
TAG = "!"
#: The most bytes of ``result.json``, the most lists and other containers in it, and how deep they
#: may be in each other: reading it must not take much memory.
MOST_BYTES = 10_000_000
MOST_CONTAINERS = 1_000_000
DEEPEST = 100
#: The most columns of a table, its most cells, and the most characters of a cell.
MOST_COLUMNS = 10_000
MOST_CELLS = 5_000_000
MOST_CELL = 100_000
#: The most characters of an error's message and of its traceback.
MOST_MESSAGE = 5_000
MOST_TRACEBACK = 20_000

#: Integers up to here are numbers of JSON.
_PLAIN_INT = 2**63
#: The types of a table's columns, as numpy calls them.
NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NUMBERS += ["float32", "float64"]


class Problem(Exception):
    """Why the function was not called, or why its value cannot be sent back, in words."""


class Encoder:
    """Makes JSON of a value; large parts become files.

    Args:
        directory: for the files.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._files = 0
        self._containers = 0

    def encode(  # noqa: PLR0911  (a line for each kind of value)
        self, value: Any, where: str = "", depth: int = 0
    ) -> Any:
        """Return JSON for a value; ``where`` it is in the whole, for messages.

        Raises:
            Problem: it, or a part of it, has a type that cannot be sent back.
        """
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind in _ATOMS:
            return _ATOMS[kind](value)
        if kind in (list, tuple, set, frozenset, dict):
            return self._container(value, where, depth)
        if kind in (bytes, bytearray):
            return _tagged(kind.__name__, base64.b64encode(value).decode())
        if kind in (datetime.datetime, datetime.time):
            return _moment(value, where)
        if isinstance(value, Path):
            return self._path(value, where)
        module = kind.__module__.partition(".")[0]
        if module == "numpy":
            return self._numpy(value, where)
        if module == "pandas" and kind.__name__ in ("DataFrame", "Series"):
            return self._table(value, where)
        raise _cannot(value, where, _hint(value))

    def _container(self, value: Any, where: str, depth: int) -> Any:
        self._containers += 1
        if depth > DEEPEST:
            raise Problem(
                f"the function returned lists or dictionaries that are more than {DEEPEST} deep in "
                "each other"
            )
        if self._containers > MOST_CONTAINERS:
            raise Problem(
                f"the function returned more than {MOST_CONTAINERS:,} lists, tuples and "
                "dictionaries: return arrays, or write a file and return its Path"
            )
        if type(value) is not dict:
            items = [
                self.encode(each, f"{where}[{number}]", depth + 1)
                for number, each in enumerate(value)
            ]
            return items if type(value) is list else _tagged(type(value).__name__, items)
        if TAG not in value and all(type(key) is str and _is_text(key) for key in value):
            return {
                key: self.encode(each, f"{where}[{key!r}]", depth + 1)
                for key, each in value.items()
            }
        pairs = []
        for key, each in value.items():
            self._containers += 1
            pair = self.encode(key, f"{where} (a key)", depth + 1)
            pairs.append([pair, self.encode(each, f"{where}[{key!r:.80}]", depth + 1)])
        return _tagged("dict", pairs)

    # -- files

    def _new_file(self, name: str) -> Path:
        path = self._directory / f"{self._files}{name}"
        self._files += 1
        return path

    def _path(self, path: Path, where: str) -> Any:
        if not path.exists():
            raise Problem(
                f"the function returned {_place(where)}{path!r}, but there is no such file: return "
                "the Path of a file that it wrote"
            )
        if path.resolve() in (self._directory.resolve(), *self._directory.resolve().parents):
            raise Problem(
                f"the function returned {_place(where)}{path!r}, the directory that it ran in: "
                "return the Paths of the files that it wrote"
            )
        # Numbers keep two files of one name apart.
        new = self._new_file(f"-{path.name}")
        if path.is_dir():
            shutil.copytree(str(path), str(new))
        else:
            shutil.copyfile(str(path), str(new))
        return _tagged("path", new.name)

    def _numpy(self, value: Any, where: str) -> Any:
        numpy = importlib.import_module("numpy")
        if isinstance(value, numpy.generic):
            if value.dtype.kind in "biufcU" and not isinstance(
                value, (numpy.longdouble, numpy.clongdouble)
            ):
                return self.encode(value.item(), where)
        elif type(value) is not numpy.ndarray:
            raise _cannot(value, where, "return numpy.asarray(...) of it")
        if value.dtype.hasobject:
            raise Problem(
                f"the function returned {_place(where)}an array of objects (dtype {value.dtype}), "
                "which would have to be pickled: return an array of numbers, or a list"
            )
        path = self._new_file(".npy")
        with path.open("wb") as file:
            numpy.lib.format.write_array(file, numpy.asarray(value), allow_pickle=False)
        name = "array" if isinstance(value, numpy.ndarray) else "scalar"
        return _tagged(name, path.name)

    def _table(self, value: Any, where: str) -> Any:
        is_series = type(value).__name__ == "Series"
        names: list[Any] = [value.name] if is_series else list(value.columns)
        columns = [value] if is_series else [value.iloc[:, at] for at in range(len(names))]
        pandas = importlib.import_module("pandas")
        index = value.index
        if isinstance(index, pandas.MultiIndex):
            raise _cannot(value, where, "it has an index of several levels: use reset_index()")
        has_index = not index.equals(pandas.RangeIndex(len(index))) or index.name is not None
        if has_index:
            names.insert(0, index.name)
            columns.insert(0, index.to_series())
        if len(names) > MOST_COLUMNS or len(names) * len(value) > MOST_CELLS:
            raise _cannot(
                value,
                where,
                f"it has more than {MOST_COLUMNS:,} columns or {MOST_CELLS:,} cells; write a file "
                "and return its Path",
            )
        for name in names:
            if name is not None and type(name) is not str:
                raise _cannot(value, where, f"column {name!r} is not called by a text: rename it")
        # Python 3.8's zip has no strict.
        read = [_column(value, where, *each) for each in zip(names, columns)]  # noqa: B905
        path = self._new_file(".csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL)
            writer.writerow(["" if name is None else name for name in names])
            cells = (["" if each is None else each for each in texts] for _, texts in read)
            writer.writerows(zip(*cells))  # noqa: B905
        self._containers += 3 * len(names)
        columns = [
            {"name": name, "type": kind, "missing": [n for n, x in enumerate(texts) if x is None]}
            for name, (kind, texts) in zip(names, read)  # noqa: B905
        ]
        return {
            **_tagged("table", path.name),
            "columns": columns,
            "rows": len(value),
            "index": has_index,
            "series": is_series,
        }


def _column(value: Any, where: str, name: Any, column: Any) -> tuple[str, list[str | None]]:
    """Return the type of a column, and its cells as texts; None: missing."""
    kind = str(column.dtype)
    if kind in NUMBERS:
        if kind.startswith("float"):
            # NaN is a text here, so that it stays one number among others.
            return kind, [repr(each) for each in column.astype("float64").tolist()]
        return kind, [str(each) for each in column.tolist()]
    if kind.startswith("datetime64[") and "," not in kind:
        absent = column.isna().tolist()
        texts = column.to_numpy().astype(kind).astype(str).tolist()
        return kind, [None if absent[at] else text for at, text in enumerate(texts)]
    if kind in ("object", "str", "string"):
        cells: list[str | None] = []
        is_missing = column.isna().tolist()
        for number, each in enumerate(column.tolist()):
            if is_missing[number]:
                cells.append(None)
            elif type(each) is str and _is_text(each) and len(each) <= MOST_CELL:
                cells.append(each)
            else:
                raise _cannot(
                    value,
                    where,
                    f"column {name!r} has values of the type {_type_name(each)}, "
                    f"or texts of more than {MOST_CELL:,} characters",
                )
        return "str", cells
    raise _cannot(
        value, where, f"column {name!r} has the type {kind}: make it numbers or texts with astype"
    )


def _is_text(text: str) -> bool:
    """Whether JSON gives this text back: two halves of a character would become one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _tagged(kind: str, content: Any) -> dict[str, Any]:
    return {TAG: kind, "of": content}


def _int(value: int) -> Any:
    return value if -_PLAIN_INT <= value < _PLAIN_INT else _tagged("int", f"{value:x}")


def _float(value: float) -> Any:
    return value if math.isfinite(value) else _tagged("float", repr(value))


def _str(value: str) -> Any:
    if _is_text(value):
        return value
    raw = value.encode("utf-8", "surrogatepass")
    return _tagged("str", base64.b64encode(raw).decode())


_ATOMS: dict[type, Callable[[Any], Any]] = {
    int: _int,
    float: _float,
    str: _str,
    complex: lambda value: _tagged("complex", [_float(value.real), _float(value.imag)]),
    datetime.date: lambda value: _tagged("date", value.isoformat()),
    datetime.timedelta: lambda value: _tagged(
        "timedelta", [value.days, value.seconds, value.microseconds]
    ),
}


def _moment(value: Any, where: str) -> Any:
    if value.tzinfo is not None and type(value.tzinfo) is not datetime.timezone:
        raise _cannot(
            value, where, "its time zone has no fixed offset: use astimezone(timezone.utc)"
        )
    return {**_tagged(type(value).__name__, value.isoformat()), "fold": value.fold}


def _type_name(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _place(where: str, verb: str = "is", otherwise: str = "") -> str:
    return f"a value whose {where[:200]} {verb} " if where else otherwise


def _cannot(value: Any, where: str, hint: str) -> Problem:
    place = _place(where, "has the type", "a value of the type ")
    return Problem(
        f"the function returned {place}{_type_name(value)}, which cannot be sent back: {hint}"
    )


def _hint(value: Any) -> str:
    if dataclasses.is_dataclass(value):
        return "return dataclasses.asdict(...) of it"
    if isinstance(value, tuple):
        return "return tuple(...) or ._asdict() of it"
    for kind in (dict, list, set, str, int, float):
        if isinstance(value, kind):
            return f"return {kind.__name__}(...) of it"
    if hasattr(value, "savefig"):
        return "save it as a file with savefig, and return the file's Path"
    if hasattr(value, "__next__"):
        return "return list(...) of it"
    return "return numbers, texts, lists, dictionaries, arrays, tables, or the Path of a file"


# -- the call


def read_call(python: str, function: str, arguments: str) -> tuple[Any, Any, Any]:
    """Return the function, its arguments and its keyword arguments.

    Raises:
        Problem: this Python cannot load them.
    """
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if here != python:
        raise Problem(
            f"the function was sent by Python {python}, and the image has Python {here}, which "
            f"may not understand it: use an image with Python {python}, such as "
            f"python:{python}-slim, or call the function from Python {here}"
        )
    sys.path.insert(0, str(Path(PACKAGES).absolute()))
    try:
        function_and_source = pickle.loads(Path(function).read_bytes())  # noqa: S301
        if arguments.startswith(INLINE):
            content = base64.b64decode(arguments[len(INLINE) :])
        else:
            content = Path(arguments).read_bytes()
        args, kwargs = pickle.loads(content)  # noqa: S301
    except ImportError as error:
        name = error.name or ""
        raise Problem(
            f"the image cannot import {name or 'a module'} ({error}): use an image that has it. "
            "If the module is your own, send it along: project.function(..., modules=[...])"
        ) from error
    call, source = function_and_source
    for name, lines in source.items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
        _name_file(call, name)
    return call, args, kwargs


def _name_file(function: Any, name: str) -> None:
    """Give a function's code the name of its file again, which cloudpickle 3.1.3 leaves out."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    function = getattr(function, "__func__", function)
    function.__code__ = _in_file(function.__code__, name)


def _in_file(code: CodeType, name: str) -> CodeType:
    """Return code, and the code of functions in it, with the name of its file."""
    parts = (
        _in_file(each, name) if isinstance(each, CodeType) else each for each in code.co_consts
    )
    return code.replace(co_filename=name, co_consts=tuple(parts))


def _told(error: BaseException) -> dict[str, str]:
    """Return an error's type, message and traceback, without the frames of this file."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename == __file__:
        place = place.tb_next
    try:
        message = str(error)
    except Exception:  # noqa: BLE001  (whatever a class of the user does)
        message = "(its message cannot be shown)"
    try:
        lines = "".join(traceback.format_exception(type(error), error, place))
    except Exception:  # noqa: BLE001
        lines = ""
    kind = type(error)
    is_known = kind.__module__ in ("builtins", "__main__")
    return {
        "type": kind.__name__ if is_known else f"{kind.__module__}.{kind.__name__}",
        "message": _cut(message, MOST_MESSAGE),
        "traceback": _cut(lines, MOST_TRACEBACK),
    }


def _cut(text: str, most: int) -> str:
    text = text.encode("utf-8", "backslashreplace").decode()
    # The end of a traceback tells most.
    return text if len(text) <= most else f"{text[: most // 4]}\n...\n{text[-3 * most // 4 :]}"


def run(python: str, function: str, arguments: str) -> dict[str, Any]:
    """Call the function; return what goes into ``result.json``."""
    try:
        call, args, kwargs = read_call(python, function, arguments)
    except Problem as problem:
        return {"problem": str(problem)}
    except Exception as error:  # noqa: BLE001  (pickles run the user's code)
        return {"problem": "the function or its arguments cannot be loaded", "raised": _told(error)}
    try:
        value = call(*args, **kwargs)
    except BaseException as error:  # noqa: BLE001  (also SystemExit)
        return {"raised": _told(error)}
    try:
        return {"value": Encoder(Path(RETURNED)).encode(value)}
    except Problem as problem:
        return {"problem": str(problem)}
    except Exception as error:  # noqa: BLE001  (a full disk, ...)
        return {"problem": "the value cannot be written", "raised": _told(error)}


def main(call: str, python: str, function: str, arguments: str) -> int:
    """Run the call that the command line names; return the exit status, 1 unless it has a value."""
    # A computer that was switched off begins again in the same directory.
    shutil.rmtree(RETURNED, ignore_errors=True)
    Path(RETURNED).mkdir()
    outcome = run(python, function, arguments)
    head = {"format": FORMAT, "call": call}
    text = json.dumps({**head, **outcome}, allow_nan=False)
    if len(text) > MOST_BYTES:
        outcome = {
            "problem": f"the function returned {len(text):,} bytes of JSON, and no more than "
            f"{MOST_BYTES:,} are read: return arrays, or write a file and return its Path"
        }
        text = json.dumps({**head, **outcome})
    for key in ("problem", "raised"):
        if key in outcome:
            told = outcome[key]
            print(told if key == "problem" else told["traceback"], file=sys.stderr)  # noqa: T201
    Path(RETURNED, RESULT).write_text(text, "utf-8")
    return 0 if "value" in outcome else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
