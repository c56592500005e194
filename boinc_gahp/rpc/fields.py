"""Parts that requests have in common: the batch, flags, the names of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.errors import BadRequest
from boinc_gahp.rpc import build

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lxml import etree


def named(batch_id: int | None, batch_name: str | None) -> str:
    """Return how error messages refer to the batch."""
    return f"batch {batch_name!r}" if batch_id is None else f"batch {batch_id}"


def batch_element(batch_id: int | None, batch_name: str | None) -> etree._Element:
    """Return the element that identifies the batch; raise BadRequest without an id or name."""
    if batch_id is not None:
        return build.leaf("batch_id", str(batch_id))
    if batch_name is None:
        raise BadRequest("neither batch_id nor batch_name is given")
    return build.leaf("batch_name", batch_name)


def flags(**wanted: bool) -> Iterable[etree._Element]:
    """Return an element for each flag that is set."""
    return (build.leaf(name, "1") for name, on in wanted.items() if on)


def files(
    names: Sequence[str], batch_id: int | None, delete_time: float | None
) -> Iterable[etree._Element]:
    """Return the elements for files in query_files and upload_files."""
    if batch_id is not None:
        yield build.leaf("batch_id", str(batch_id))
    if delete_time is not None:
        yield build.leaf("delete_time", build.number(int(delete_time), "delete_time"))
    for name in names:
        yield build.leaf("phys_name", name)
