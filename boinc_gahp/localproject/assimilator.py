"""The assimilator: hands finished workunits to the project, once each (``back-end.md``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .states import AssimilateState

if TYPE_CHECKING:
    from .core import Core

_PASS = 1000


def assimilate_pass(core: Core, now: float) -> int:
    """Mark the workunits that are READY as DONE; return how many there were.

    The project does nothing else with them: submitters fetch outputs from where they are.
    """
    with core.db.write() as connection:
        cursor = connection.execute(
            "UPDATE workunit SET assimilate_state = ?, transition_time = ?, mod_time = ? "
            "WHERE id IN (SELECT id FROM workunit WHERE assimilate_state = ? LIMIT ?)",
            (AssimilateState.DONE, now, now, AssimilateState.READY, _PASS),
        )
        return cursor.rowcount
