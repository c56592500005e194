"""The SQL text of create_work, which appears in its error messages.

A real project puts all of it into ``error_msg``, up to a megabyte, unescaped (``web-rpcs.rst``,
"Transport and framing").
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from boinc_gahp.localproject.backend.work import COLUMNS
from boinc_gahp.localproject.server.replies import RpcFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.localproject.backend.work import NewWorkunit

#: The columns of a workunit in the order of the real server's table, with the values it writes.
_FIELDS = (
    "{create_time}, {appid}, '{name}', '{xml_doc}', {batch}, {rsc_fpops_est:f}, "
    "{rsc_fpops_bound:f}, {rsc_memory_bound:f}, {rsc_disk_bound:f}, 0, 0, 0.000000, "
    "{transition_time:.0f}, {delay_bound:.0f}, 0, 0, 0, 0, 0.000000, {min_quorum}, "
    "{target_nresults}, {max_error_results}, {max_total_results}, {max_success_results}, "
    "'{result_template_file}', {priority}, NOW(), {rsc_bandwidth_bound:f}, 0, 0, 0, {size_class}, "
    "'', {app_version_num} "
)


_REFUSED = re.compile(
    r"create_work failed: Database error: (.*)\nwu\.insert_batch\(\) failed: 1\n", re.DOTALL
)
_NEAR = re.compile(r"near '(.*)' at line 1", re.DOTALL)
_QUOTED = 80


def row_text(row: NewWorkunit) -> str:
    """Return a row as it appears in the query; its texts are not escaped."""
    return f"(0, {_FIELDS.format_map(dict(zip(COLUMNS, row.values, strict=True)))})"


def with_query(error: RpcFailed, rows: Iterable[NewWorkunit]) -> RpcFailed:
    """Return create_work's error for a query that the database has refused, with the query."""
    found = _REFUSED.fullmatch(error.message)
    if found is None:
        return error
    texts = ",".join(map(row_text, rows))
    words = _NEAR.sub(lambda near: f"near '{_following(texts, near[1])}' at line 1", found[1])
    return RpcFailed(
        f"create_work failed: Database error: {words}\n"  # noqa: S608
        f"query=insert into workunit values {texts}\n"
        f"wu.insert_batch() failed: 1\nMySQL error: {words}\n"
    )


def _following(texts: str, near: str) -> str:
    """Return the part of a query that the database quotes, from where it could not go on."""
    place = texts.find(f"'{near}") + 1
    return f"{texts[place : place + _QUOTED]}..."
