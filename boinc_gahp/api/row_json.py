"""Rows of JSON: an object on each line."""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn

from boinc_gahp.api.files import read_file, split_args
from boinc_gahp.api.row_values import COLUMNS, fpops, near, priority
from boinc_gahp.api.types import InlineFile, Job, LocalFile, RemoteFile, StagedFile
from boinc_gahp.errors import BadRequest
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.api.row_values import Values
    from boinc_gahp.api.types import File

#: Keys of an input file that is an object; the first four exclude each other.
_FILE = ("path", "staged", "url", "inline", "size", "md5")


class _Number(float):
    """A JSON number that remembers how it was written: as an argument it is a word."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> _Number:
        """Read a number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def json_rows(head: list[str], lines: Iterator[str], values: Values) -> Iterator[tuple[int, Job]]:
    """Yield the jobs with their lines; see :func:`boinc_gahp.api.row_csv.csv_rows`.

    Raises:
        WrongRow: a row does not describe a job.
    """
    for number, line in enumerate(chain(head, lines), 1):
        if line.strip():
            try:
                yield number, _job(_object(line), values)
            except BadRequest as error:
                raise values.wrong(number, error) from error


def _object(line: str) -> dict[str, Any]:
    try:
        found = json.loads(
            line, object_pairs_hook=_once, parse_float=_Number, parse_constant=_no_number
        )
    except json.JSONDecodeError as error:
        if not line.lstrip().startswith("["):
            raise BadRequest(
                f"expected one JSON object on the line, found {_shown(line.strip())}: {error.msg} "
                f"at column {error.colno}"
            ) from error
        found = []  # the error quotes a list of several lines on one
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"expected one JSON object on the line: {error}") from error
    if not isinstance(found, dict):
        raise BadRequest(
            f"expected one JSON object on the line, found {_shown(line.strip())}; write a list "
            "with one object on each line"
        )
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise BadRequest(f"{twice!r} is given twice: expected each key once")
    return found


def _no_number(word: str) -> NoReturn:
    raise BadRequest(f"{word} is not a JSON number")


def _job(row: dict[str, Any], values: Values) -> Job:
    given: dict[str, Any] = {}
    for key, value in row.items():
        column = COLUMNS.get(key)
        if column is None:
            raise BadRequest(f"there is no {key!r} in a row{near(key, COLUMNS)}")
        if column in given:
            raise BadRequest(f"{column} is given twice, also as template: expected only one")
        if value is not None:
            given[column] = value
    inputs = given.get("inputs", {})
    if not isinstance(inputs, dict):
        raise BadRequest(
            f"inputs: expected an object, open names and files, found {_shown(inputs)}"
        )
    return Job(
        args=_args(given.get("args", [])),
        inputs={name: values.file(_file(name, file)) for name, file in inputs.items()},
        name=_text("name", given),
        priority=priority(given["priority"]) if "priority" in given else None,
        fpops=fpops(given["fpops"]) if "fpops" in given else None,
        input_template=_template("input_template", given, values),
        output_template=_template("output_template", given, values),
    )


def _args(found: Any) -> tuple[str, ...]:
    if isinstance(found, str):
        return split_args(found)
    if not isinstance(found, list):
        raise BadRequest(
            f"args: expected a string, which is split as a shell would, or a list of words, found "
            f"{_shown(found)}"
        )
    return tuple(map(_word, found))


def _word(found: Any) -> str:
    if isinstance(found, str):
        return found
    if isinstance(found, _Number):
        return found.text
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    raise BadRequest(f"args: expected strings or numbers, found {_shown(found)}")


def _text(key: str, given: dict[str, Any]) -> str | None:
    found = given.get(key)
    if found is None or (isinstance(found, str) and found):
        return found
    raise BadRequest(f"{key}: expected a string, not empty, found {_shown(found)}")


def _template(key: str, given: dict[str, Any], values: Values) -> str | None:
    path = _text(key, given)
    return None if path is None else values.template(path)


def _file(name: str, found: Any) -> File:
    if isinstance(found, str):
        return read_file(found)
    if not isinstance(found, dict):
        raise BadRequest(f"input {name!r}: expected a string or an object, found {_shown(found)}")
    for key in found:
        if key not in _FILE:
            raise BadRequest(f"input {name!r}: there is no {key!r} in a file{near(key, _FILE)}")
    kinds = [key for key in _FILE[:4] if key in found]
    if len(kinds) != 1:
        raise BadRequest(
            f"input {name!r}: expected one of path, staged, url and inline, found "
            f"{' and '.join(kinds) or 'none'}"
        )
    kind = kinds[0]
    text = found[kind]
    if not isinstance(text, str) or not text:
        raise BadRequest(
            f"input {name!r}: {kind}: expected a string, not empty, found {_shown(text)}"
        )
    if kind == "url":
        return _remote(name, text, found)
    if len(found) > 1:
        raise BadRequest(
            f"input {name!r}: size and md5 go with a url, not with {kind}: leave them out"
        )
    if kind == "path":
        return LocalFile(text)
    return StagedFile(text) if kind == "staged" else InlineFile(text)


def _remote(name: str, url: str, found: dict[str, Any]) -> RemoteFile:
    nbytes, md5 = found.get("size"), found.get("md5")
    if nbytes is not None and (not isinstance(nbytes, int) or isinstance(nbytes, bool)):
        raise BadRequest(
            f"input {name!r}: size: expected a number of bytes, found {_shown(nbytes)}"
        )
    if md5 is not None and not isinstance(md5, str):
        raise BadRequest(
            f"input {name!r}: md5: expected 32 hexadecimal digits, found {_shown(md5)}"
        )
    file = read_file(f"remote:{url},{'' if nbytes is None else nbytes},{md5 or ''}")
    assert isinstance(file, RemoteFile)  # noqa: S101  (for the type checker)
    return file


def _shown(found: Any) -> str:
    return shorten(found if isinstance(found, str) else json.dumps(found), 60)
