"""The ledger's tables, as numbered steps: one for each release that changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from boinc_gahp.errors import LedgerError

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

#: The part of a table's ``project_url`` after the scheme.
_IDENTITY: Final = (
    "identity TEXT GENERATED ALWAYS AS (substr(project_url, instr(project_url, ':') + 1)) VIRTUAL"
)

#: The steps of released versions never change. A daemon of the release before goes on for seconds
#: with a ledger that was migrated: a step must not take away what that daemon uses.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        # The token is part of every job's id for HTCondor. So an id from another ledger (of a state
        # directory that was set up anew) is never mistaken for one of this ledger.
        """
        CREATE TABLE meta (
            key   TEXT PRIMARY KEY,
            value TEXT NOT NULL
        ) WITHOUT ROWID
        """,
        "INSERT INTO meta (key, value) VALUES ('token', lower(hex(randomblob(4))))",
        # name: in the settings, as of the latest job. trouble: why no work is possible now.
        # unknown_since: since when the settings have no authenticator for it. polled: when it last
        # answered a question about jobs. A project's addresses may differ in scheme or default
        # port: the part of a normalized address after the scheme (boinc_gahp.config.urls), and the
        # account, identify a row.
        """
        CREATE TABLE project (
            id            INTEGER PRIMARY KEY,
            url           TEXT NOT NULL,
            account       TEXT NOT NULL,
            name          TEXT NOT NULL,
            trouble       TEXT,
            trouble_since REAL,
            unknown_since REAL,
            polled        REAL,
            UNIQUE (url, account)
        )
        """,
        # BOINC_SUBMIT's batches have no project_id, and no jobs here. Their id on the project is
        # only unique together with the project and the account.
        # sent: of these, when the last submit_batch was about to be sent. listed: how many jobs a
        # batch had on the project when it was last aborted. trouble_since: when the current series
        # of troubles began. AUTOINCREMENT: ids of dropped batches are in logs.
        f"""
        CREATE TABLE batch (
            id               INTEGER PRIMARY KEY AUTOINCREMENT,
            name             TEXT NOT NULL,
            project_id       INTEGER REFERENCES project (id),
            project_url      TEXT,
            project_account  TEXT,
            app_name         TEXT NOT NULL,
            group_key        TEXT NOT NULL,
            state            TEXT NOT NULL CHECK (state IN
                ('planned', 'sent', 'submitted', 'giving_up', 'ended', 'retired')),
            project_batch_id INTEGER,
            created          REAL NOT NULL,
            changed          REAL NOT NULL,
            lease_until      REAL NOT NULL,
            not_before       REAL NOT NULL DEFAULT 0,
            sent             REAL,
            listed           INTEGER,
            trouble          TEXT,
            trouble_since    REAL,
            {_IDENTITY},
            CHECK (project_id IS NOT NULL OR (project_url IS NOT NULL
                AND project_account IS NOT NULL AND project_batch_id IS NOT NULL
                AND state IN ('sent', 'giving_up') AND sent IS NOT NULL))
        )
        """,
        "CREATE INDEX batch_of_project ON batch (project_id, state)",
        "CREATE UNIQUE INDEX batch_name ON batch (name) WHERE project_id IS NOT NULL",
        """
        CREATE UNIQUE INDEX batch_of_submit ON batch (identity, project_account, project_batch_id)
            WHERE project_id IS NULL
        """,
        # A job's name on the project is its batch's name, "-" and its number. exit_reason: how its
        # program failed at volunteers, if this is known: one line for people; exit_code is then the
        # program's. AUTOINCREMENT: the id of a dropped job must never be used for another.
        """
        CREATE TABLE job (
            id            INTEGER PRIMARY KEY AUTOINCREMENT,
            job_directory TEXT NOT NULL,
            attempt       INTEGER NOT NULL,
            project_id    INTEGER NOT NULL REFERENCES project (id),
            project_name  TEXT NOT NULL,
            app_name      TEXT NOT NULL,
            group_key     TEXT NOT NULL,
            size          INTEGER NOT NULL,
            state         TEXT NOT NULL CHECK (state IN
                ('waiting', 'sending', 'queued', 'running', 'finished', 'fetched',
                 'done', 'failed', 'cancelled')),
            batch_id      INTEGER REFERENCES batch (id),
            number        INTEGER,
            accepted      REAL NOT NULL,
            changed       REAL NOT NULL,
            last_polled   REAL NOT NULL,
            end_reported  INTEGER NOT NULL DEFAULT 0,
            abort_pending INTEGER NOT NULL DEFAULT 0,
            writing       INTEGER NOT NULL DEFAULT 0,
            exit_code     INTEGER,
            cpu_time      REAL,
            hold_reason   TEXT,
            hold_code     INTEGER,
            hold_subcode  INTEGER,
            trouble       TEXT,
            exit_reason   TEXT,
            UNIQUE (job_directory, attempt),
            CHECK ((batch_id IS NULL) = (number IS NULL))
        )
        """,
        "CREATE INDEX job_of_project ON job (project_id, state)",
        "CREATE INDEX job_of_batch ON job (batch_id, state, number) WHERE batch_id IS NOT NULL",
        "CREATE INDEX job_abort_pending ON job (project_id) WHERE abort_pending = 1",
        "CREATE INDEX job_writing ON job (project_id) WHERE writing = 1",
        """
        CREATE INDEX job_ended ON job (changed) WHERE state IN ('done', 'failed', 'cancelled')
        """,
        # In its own table, because it is long and few queries need it.
        """
        CREATE TABLE description (
            job_id INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
            json   TEXT NOT NULL
        )
        """,
        # The text to write as the stderr of a job whose program failed, until it is written.
        """
        CREATE TABLE failure (
            job_id INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
            stderr TEXT NOT NULL
        )
        """,
        # Jobs that boinc_gahp aborted (gridmanager-boinc.rst, "Hold of one job"). batch_name is
        # NULL until a query shows the job's batch.
        f"""
        CREATE TABLE aborted_job (
            project_url TEXT NOT NULL,
            account     TEXT NOT NULL,
            job_name    TEXT NOT NULL,
            batch_name  TEXT,
            recorded    REAL NOT NULL,
            {_IDENTITY},
            PRIMARY KEY (project_url, account, job_name)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX aborted_job_of_batch ON aborted_job (identity, account, batch_name)",
        "CREATE INDEX aborted_job_recorded ON aborted_job (recorded)",
    ),
    (
        # BOINC_ABORT_JOBS and BOINC_RETIRE_BATCH that failed: a gridmanager does not repeat them
        # (gridmanager-boinc.rst, "Errors"). name: of the job or the batch.
        f"""
        CREATE TABLE owed_request (
            project_url TEXT NOT NULL,
            account     TEXT NOT NULL,
            command     TEXT NOT NULL CHECK (command IN ('abort', 'retire')),
            name        TEXT NOT NULL,
            recorded    REAL NOT NULL,
            {_IDENTITY},
            PRIMARY KEY (project_url, account, command, name)
        ) WITHOUT ROWID
        """,
    ),
    (
        # What a job took, in seconds and bytes; its outputs are what it sent.
        "ALTER TABLE job ADD COLUMN elapsed_time REAL",
        "ALTER TABLE job ADD COLUMN bytes_sent INTEGER",
        "ALTER TABLE job ADD COLUMN bytes_received INTEGER",
    ),
)

#: Ledgers from before the first release have versions up to 5.
_UNRELEASED: Final = 100

#: What ``user_version`` of an up-to-date ledger is.
VERSION: Final = len(MIGRATIONS) + _UNRELEASED


def version(path: Path, connection: sqlite3.Connection) -> int:
    """Return the ledger's version; 0: it is a new file.

    Raises:
        LedgerError: this program cannot use it.
    """
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if 0 < found <= _UNRELEASED or found > VERSION:
        raise LedgerError(
            f"the ledger {path} has version {found}, but this boinc_gahp knows versions from "
            f"{_UNRELEASED + 1} to {VERSION}: install the boinc_gahp that made it, or set another "
            "dir in the section [state]; jobs that are only in it are then held"
        )
    return found


def migrate(path: Path, connection: sqlite3.Connection) -> None:
    """Bring the ledger up to date; does nothing if it already is."""
    if version(path, connection) == VERSION:
        return
    # A step may drop a table and create it anew. The pragma has no effect inside a transaction.
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Checked again, now that no other process can be migrating.
        done = max(version(path, connection) - _UNRELEASED, 0)
        for statement in (each for step in MIGRATIONS[done:] for each in step):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION:d}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
