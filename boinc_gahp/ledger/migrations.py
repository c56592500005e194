"""The ledger's tables, as numbered steps: a ledger of any earlier version is brought up to date."""

from __future__ import annotations

from typing import Final

#: Step n (counted from 1) takes a ledger from version n - 1 to version n. Steps that were ever
#: released do not change; a later need is a later step.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        # Jobs that boinc_gahp aborted (gridmanager-boinc.md, "hold1of3"). batch_name is NULL
        # until a query shows which batch the job is in.
        """
        CREATE TABLE aborted_job (
            project_url TEXT NOT NULL,
            account     TEXT NOT NULL,
            job_name    TEXT NOT NULL,
            batch_name  TEXT,
            recorded    REAL NOT NULL,
            PRIMARY KEY (project_url, account, job_name)
        ) WITHOUT ROWID
        """,
        """
        CREATE INDEX aborted_job_of_batch ON aborted_job (project_url, account, batch_name)
        """,
        # A submit_batch that may be under way ("submitting"; due: when its submitter gives up),
        # or an abort_batch that is owed ("abort"; due: not before).
        """
        CREATE TABLE debt (
            project_url TEXT NOT NULL,
            account     TEXT NOT NULL,
            batch_id    INTEGER NOT NULL,
            batch_name  TEXT NOT NULL,
            kind        TEXT NOT NULL CHECK (kind IN ('submitting', 'abort')),
            due         REAL NOT NULL,
            recorded    REAL NOT NULL,
            PRIMARY KEY (project_url, account, batch_id)
        ) WITHOUT ROWID
        """,
    ),
)

VERSION: Final = len(MIGRATIONS)
