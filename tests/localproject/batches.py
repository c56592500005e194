"""Batches that are made without the web RPCs."""

import time

from boinc_gahp.localproject.backend.create_work import create_work


def made_batch(core, name, jobs, *, app_name="uppercase", user_name="submitter", create_time=None):
    """Make a batch with jobs; return its id."""
    with core.db.write() as connection:
        cursor = connection.execute(
            "INSERT INTO batch (user_id, create_time, name, name_key, app_id, expire_time) "
            "SELECT u.id, ?, ?, ?, a.id, 0 FROM user u, app a WHERE u.name = ? AND a.name = ?",
            (time.time() if create_time is None else create_time, name, name, user_name, app_name),
        )
    create_work(core, app_name, jobs, batch_id=cursor.lastrowid)
    return cursor.lastrowid
