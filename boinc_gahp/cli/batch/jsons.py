"""The JSON documents that ``boinc_gahp batch … --json`` prints, and the printing.

Times are RFC 3339 in UTC, or null if there is none; durations are seconds, sizes bytes; states are
the names of :class:`~boinc_gahp.states.BatchState` and :class:`~boinc_gahp.JobState` in
lower case. Keys are in the order in which people think of them, and never change.
"""

from __future__ import annotations

import io
import json
import sys
import time
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

from boinc_gahp.terminal.words import moment
from boinc_gahp.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.errors import GahpError
    from boinc_gahp.rpc.types import BatchInfo


def brief_json(info: BatchInfo) -> dict[str, Any]:
    """Return what is most important about a batch."""
    return {
        **picked(info, "id", "name"),
        "state": info.state.name.lower(),
        "jobs": info.njobs,
        "failed_jobs": info.nerror_jobs,
    }


def batch_json(batch: Batch) -> dict[str, Any]:
    """Return a batch as the project last reported it."""
    return {
        **brief_json(batch.info),
        "app": batch.app_name,
        "fraction_done": batch.fraction_done,
        "created": moment(batch.create_time),
        "expected_end": moment(batch.expected_end),
        "ended": moment(batch.completion_time),
        "kept_until": moment(batch.expire_time),
        "credit_estimate": batch.info.credit_estimate,
        "credit": batch.info.credit_canonical,
    }


def news_json(batch: Batch) -> dict[str, Any]:
    """Return a batch as it is now, when something about it has changed."""
    counts = batch.latest_counts
    return {
        "time": moment(time.time()),
        **batch_json(batch),
        "jobs_over": batch.nover,
        "waiting": None if counts is None else counts.queued,
        "running": None if counts is None else counts.in_progress,
        "done": batch.ndone,
        "failed": batch.nerror_jobs,
        "is_over": batch.is_over,
        "is_gone": batch.gone,
        "trouble": None if batch.trouble is None else str(batch.trouble),
        "attempts": batch.attempts or None,
    }


def document_of(value: Any) -> dict[str, Any]:
    """Return a dataclass as JSON has it: its fields, a ``Time`` as a text."""
    return {
        each.name: _member(getattr(value, each.name), is_time="Time" in str(each.type))
        for each in fields(value)
    }


def _member(value: Any, *, is_time: bool = False) -> Any:
    if isinstance(value, list):
        return [_member(each) for each in value]
    if is_dataclass(value):
        return document_of(value)
    return moment(value) if is_time else value


def error_json(error: GahpError | None) -> dict[str, Any]:
    """Return an error and its code; nulls: there is none."""
    if error is None:
        return {"error": None, "code": None}
    return {"error": str(error), "code": error.code}


def picked(value: object, *names: str) -> dict[str, Any]:
    """Return attributes that have the same names in JSON."""
    return {name: getattr(value, name) for name in names}


def print_json(document: Mapping[str, Any] | Iterable[Any], **lists: Iterable[Any]) -> None:
    """Print one JSON document, indented by 2 spaces.

    Args:
        document: an object, printed whole; or any other iterable, printed as a list with a line per
            element, each written as soon as it is available.
        lists: members of the object to print after the others, each as a list in the same way.
    """
    out = _utf8(sys.stdout)
    if not hasattr(document, "keys"):
        _write_list(out, document, "")
        out.write("\n")
        return
    lines = [f"  {_dump(key)}: {_indented(value)}" for key, value in dict(document).items()]
    out.write("{\n" + ",\n".join(lines))
    for name, items in lists.items():
        out.write(f",\n  {_dump(name)}: " if lines else f"\n  {_dump(name)}: ")
        _write_list(out, items, "  ")
        lines.append(name)
    out.write("\n}\n" if lines else "}\n")


def print_line(document: Mapping[str, Any]) -> None:
    """Print an object as one line, immediately."""
    print(_dump(dict(document)), file=_utf8(sys.stdout), flush=True)


def _utf8(stream: TextIO) -> TextIO:
    """Return the stream, set to UTF-8, which JSON needs, whatever the locale is."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="strict")
    return stream


def _write_list(out: TextIO, items: Iterable[Any], indent: str) -> None:
    empty = True
    for item in items:
        out.write(("[\n" if empty else ",\n") + f"{indent}  {_dump(item)}")
        empty = False
    out.write("[]" if empty else f"\n{indent}]")


def _indented(value: Any) -> str:
    lines = json.dumps(_clean(value), ensure_ascii=False, indent=2).split("\n")
    return "\n  ".join(visible(line, _escape) for line in lines)


def _dump(value: Any) -> str:
    return visible(json.dumps(_clean(value), ensure_ascii=False), _escape)


def _escape(character: str) -> str:
    """Return a character as JSON can write it, so that programs read the project's own text."""
    return json.dumps(character)[1:-1]


def _clean(value: Any) -> Any:
    """Return a value that JSON can express: no infinity, no half of a surrogate pair in texts."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    if isinstance(value, dict):
        return {_clean(key): _clean(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(each) for each in value]
    return value
