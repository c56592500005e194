"""The size regulator: keeps a number of results of each size class UNSENT.

An app with several size classes (``app.n_size_classes``, ``templates.rst``: ``<size_class>``) has
its results made INACTIVE; BOINC's ``size_regulator`` lets them out bit by bit, so that results of
every class are there for the hosts they suit, and none fills the scheduler's list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .states import ServerState

if TYPE_CHECKING:
    from .core import Core

#: When fewer results of a class are UNSENT than this, ...
_LOW = 50
#: ... there shall be as many as this.
_HIGH = 100


def regulate_pass(core: Core, low: int = _LOW, high: int = _HIGH) -> int:
    """Make INACTIVE results UNSENT, those of higher priority first; return how many.

    Results of an app that has no size classes any more are all made UNSENT.
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
