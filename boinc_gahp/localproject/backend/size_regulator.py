"""The size regulator: keeps a number of results of each size class UNSENT.

The results of an app with several size classes (``app.n_size_classes``, ``templates.rst``:
``<size_class>``) are made INACTIVE; BOINC's ``size_regulator`` releases them bit by bit, so that
every class has results for its hosts, and no class fills the scheduler's list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.localproject.states import ServerState

if TYPE_CHECKING:
    from boinc_gahp.localproject.core import Core

#: If fewer results of a class are UNSENT than this, ...
_LOW = 50
#: ... their number is raised to this.
_HIGH = 100


def regulate_pass(core: Core, low: int = _LOW, high: int = _HIGH) -> int:
    """Make INACTIVE results UNSENT, those of higher priority first; return their number.

    If an app no longer has size classes, all its results are made UNSENT.
    """
    connection = core.db.connection()
    classes = connection.execute(
        "SELECT r.appid, r.size_class, a.n_size_classes > 1 AS sized "
        "FROM (SELECT DISTINCT appid, size_class FROM result WHERE server_state = 1) r "
        "JOIN app a ON a.id = r.appid"
    ).fetchall()
    count = 0
    for row in classes:
        with core.db.write() as connection:
            (unsent,) = connection.execute(
                "SELECT count(*) FROM result WHERE server_state = 2 AND appid = ? "
                "AND size_class = ?",
                (row["appid"], row["size_class"]),
            ).fetchone()
            if row["sized"] and unsent >= low:
                continue
            count += connection.execute(
                "UPDATE result SET server_state = ? WHERE id IN (SELECT id FROM result "
                "WHERE server_state = 1 AND appid = ? AND size_class = ? "
                "ORDER BY priority DESC, id LIMIT ?)",
                (
                    ServerState.UNSENT,
                    row["appid"],
                    row["size_class"],
                    high - unsent if row["sized"] else -1,
                ),
            ).rowcount
    return count
