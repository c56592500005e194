"""The ledger's tables, as numbered steps that update a ledger of any earlier version."""

from __future__ import annotations

from typing import Final

#: The part of a table's ``project_url`` after the scheme.
IDENTITY_SQL: Final = "substr(project_url, instr(project_url, ':') + 1)"

#: Step n (counted from 1) takes a ledger from version n - 1 to version n. Released steps never
#: change; add a later step instead.
MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        # Jobs that boinc_gahp aborted (gridmanager-boinc.rst, "Hold of one job"). batch_name is
        # NULL until a query shows the job's batch.
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
        # or an abort_batch that is pending ("abort"; due: not before).
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
        """
        CREATE TABLE project (
            id            INTEGER PRIMARY KEY,
            url           TEXT NOT NULL,
            account       TEXT NOT NULL,
            name          TEXT NOT NULL,
            trouble       TEXT,
            trouble_since REAL,
            UNIQUE (url, account)
        )
        """,
        """
        CREATE TABLE batch (
            id               INTEGER PRIMARY KEY AUTOINCREMENT,
            name             TEXT NOT NULL UNIQUE,
            project_id       INTEGER NOT NULL REFERENCES project (id),
            app_name         TEXT NOT NULL,
            together         TEXT NOT NULL,
            state            TEXT NOT NULL CHECK (state IN
                ('planned', 'sent', 'submitted', 'giving_up', 'ended', 'retired')),
            project_batch_id INTEGER,
            created          REAL NOT NULL,
            changed          REAL NOT NULL,
            lease_until      REAL NOT NULL,
            not_before       REAL NOT NULL DEFAULT 0,
            trouble          TEXT
        )
        """,
        "CREATE INDEX batch_of_project ON batch (project_id, state)",
        # A job's name on the project is its batch's name, "-" and its number. AUTOINCREMENT: the id
        # of a dropped job must never be used for another.
        """
        CREATE TABLE job (
            id            INTEGER PRIMARY KEY AUTOINCREMENT,
            job_directory TEXT NOT NULL,
            attempt       INTEGER NOT NULL,
            project_id    INTEGER NOT NULL REFERENCES project (id),
            project_name  TEXT NOT NULL,
            app_name      TEXT NOT NULL,
            together      TEXT NOT NULL,
            size          INTEGER NOT NULL,
            state         TEXT NOT NULL CHECK (state IN
                ('waiting', 'sending', 'queued', 'running', 'finished', 'fetched',
                 'done', 'failed', 'cancelled')),
            batch_id      INTEGER REFERENCES batch (id),
            number        INTEGER,
            accepted      REAL NOT NULL,
            changed       REAL NOT NULL,
            asked         REAL NOT NULL,
            told          INTEGER NOT NULL DEFAULT 0,
            abort_owed    INTEGER NOT NULL DEFAULT 0,
            writing       INTEGER NOT NULL DEFAULT 0,
            exit_code     INTEGER,
            cpu_time      REAL,
            hold_reason   TEXT,
            hold_code     INTEGER,
            hold_subcode  INTEGER,
            trouble       TEXT,
            UNIQUE (job_directory, attempt),
            CHECK ((batch_id IS NULL) = (number IS NULL))
        )
        """,
        "CREATE INDEX job_of_project ON job (project_id, state)",
        "CREATE INDEX job_of_batch ON job (batch_id, state, number) WHERE batch_id IS NOT NULL",
        "CREATE INDEX job_abort_owed ON job (project_id) WHERE abort_owed = 1",
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
    ),
    (
        # A project's addresses may differ in scheme or default port. The part of a normalized
        # address after the scheme identifies the project (boinc_gahp.config.urls).
        f"ALTER TABLE debt ADD COLUMN identity TEXT GENERATED ALWAYS AS ({IDENTITY_SQL}) VIRTUAL",
        # If a batch has debts under two addresses, one that is an abort wins.
        """
        DELETE FROM debt WHERE EXISTS (SELECT * FROM debt AS other
            WHERE (other.identity, other.account, other.batch_id)
                = (debt.identity, debt.account, debt.batch_id)
            AND (other.kind, other.project_url) < (debt.kind, debt.project_url))
        """,
        "CREATE UNIQUE INDEX debt_of_batch ON debt (identity, account, batch_id)",
        f"""
        ALTER TABLE aborted_job
            ADD COLUMN identity TEXT GENERATED ALWAYS AS ({IDENTITY_SQL}) VIRTUAL
        """,
        "DROP INDEX aborted_job_of_batch",
        "CREATE INDEX aborted_job_of_batch ON aborted_job (identity, account, batch_name)",
        "CREATE INDEX aborted_job_recorded ON aborted_job (recorded)",
        # Since when the settings have no authenticator for it.
        "ALTER TABLE project ADD COLUMN unknown_since REAL",
        # When the current series of troubles began.
        "ALTER TABLE batch ADD COLUMN trouble_since REAL",
        "UPDATE batch SET trouble_since = changed WHERE trouble IS NOT NULL",
    ),
    (
        # When it last answered a question about jobs; for monitoring.
        "ALTER TABLE project ADD COLUMN polled REAL",
        # How many jobs it had on the project when it was last aborted.
        "ALTER TABLE batch ADD COLUMN listed INTEGER",
        # If a job's program failed at volunteers and this is known: one line for people. Its
        # exit_code is the program's.
        "ALTER TABLE job ADD COLUMN exit_reason TEXT",
        # The text to write as such a job's stderr, until it is written; in its own table, like
        # descriptions.
        """
        CREATE TABLE failure (
            job_id INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
            stderr TEXT NOT NULL
        )
        """,
    ),
    (
        # BOINC_SUBMIT's batches become batches like HTCondor's others, without jobs. They have no
        # project_id, so daemons of earlier versions, which may still run, do not find them in
        # this table. Their id is only unique together with the project and the account.
        # sent: of these, when the last submit_batch was about to be sent. New columns of joined
        # tables have no name of another table's: those daemons name columns without the table.
        f"""
        CREATE TABLE batch_5 (
            id               INTEGER PRIMARY KEY AUTOINCREMENT,
            name             TEXT NOT NULL,
            project_id       INTEGER REFERENCES project (id),
            project_url      TEXT,
            project_account  TEXT,
            app_name         TEXT NOT NULL,
            together         TEXT NOT NULL,
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
            identity         TEXT GENERATED ALWAYS AS ({IDENTITY_SQL}) VIRTUAL,
            CHECK (project_id IS NOT NULL OR (project_url IS NOT NULL
                AND project_account IS NOT NULL AND project_batch_id IS NOT NULL
                AND state IN ('sent', 'giving_up') AND sent IS NOT NULL))
        )
        """,
        """
        INSERT INTO batch_5 (id, name, project_id, app_name, together, state, project_batch_id,
            created, changed, lease_until, not_before, listed, trouble, trouble_since)
        SELECT id, name, project_id, app_name, together, state, project_batch_id,
            created, changed, lease_until, not_before, listed, trouble, trouble_since FROM batch
        """,
        # Ids of dropped batches are in logs.
        "DELETE FROM sqlite_sequence WHERE name = 'batch_5'",
        "UPDATE sqlite_sequence SET name = 'batch_5' WHERE name = 'batch'",
        "DROP TABLE batch",
        "ALTER TABLE batch_5 RENAME TO batch",
        "CREATE INDEX batch_of_project ON batch (project_id, state)",
        "CREATE UNIQUE INDEX batch_name ON batch (name) WHERE project_id IS NOT NULL",
        """
        CREATE UNIQUE INDEX batch_of_submit ON batch (identity, project_account, project_batch_id)
            WHERE project_id IS NULL
        """,
        """
        INSERT INTO batch (name, project_url, project_account, app_name, together, state,
            project_batch_id, created, changed, lease_until, not_before, sent)
        SELECT batch_name, project_url, account, '', '',
            CASE kind WHEN 'abort' THEN 'giving_up' ELSE 'sent' END,
            batch_id, recorded, recorded, 0, due, recorded FROM debt
        """,
        # Daemons of earlier versions keep these rows in debt. What they write there is copied to
        # batch, and what is written to batch is copied there. Nothing else uses debt.
        """
        CREATE TRIGGER debt_inserted AFTER INSERT ON debt
        WHEN NOT EXISTS (SELECT * FROM batch WHERE project_id IS NULL
            AND (project_url, project_account, project_batch_id)
                = (NEW.project_url, NEW.account, NEW.batch_id))
        BEGIN
            INSERT INTO batch (name, project_url, project_account, app_name, together, state,
                project_batch_id, created, changed, lease_until, not_before, sent)
            VALUES (NEW.batch_name, NEW.project_url, NEW.account, '', '',
                CASE NEW.kind WHEN 'abort' THEN 'giving_up' ELSE 'sent' END,
                NEW.batch_id, NEW.recorded, NEW.recorded, 0, NEW.due, NEW.recorded);
        END
        """,
        """
        CREATE TRIGGER debt_updated AFTER UPDATE ON debt
        BEGIN
            UPDATE batch SET name = NEW.batch_name, project_url = NEW.project_url,
                project_account = NEW.account, project_batch_id = NEW.batch_id,
                state = CASE NEW.kind WHEN 'abort' THEN 'giving_up' ELSE 'sent' END,
                not_before = NEW.due, sent = NEW.recorded
            WHERE project_id IS NULL AND (project_url, project_account, project_batch_id)
                = (OLD.project_url, OLD.account, OLD.batch_id);
        END
        """,
        """
        CREATE TRIGGER debt_deleted AFTER DELETE ON debt
        BEGIN
            DELETE FROM batch
            WHERE project_id IS NULL AND (project_url, project_account, project_batch_id)
                = (OLD.project_url, OLD.account, OLD.batch_id);
        END
        """,
        """
        CREATE TRIGGER batch_inserted AFTER INSERT ON batch
        WHEN NEW.project_id IS NULL AND NOT EXISTS (SELECT * FROM debt
            WHERE (project_url, account, batch_id)
                = (NEW.project_url, NEW.project_account, NEW.project_batch_id))
        BEGIN
            INSERT INTO debt (project_url, account, batch_id, batch_name, kind, due, recorded)
            VALUES (NEW.project_url, NEW.project_account, NEW.project_batch_id, NEW.name,
                CASE NEW.state WHEN 'giving_up' THEN 'abort' ELSE 'submitting' END,
                NEW.not_before, NEW.sent);
        END
        """,
        """
        CREATE TRIGGER batch_updated AFTER UPDATE ON batch WHEN NEW.project_id IS NULL
        BEGIN
            UPDATE debt SET project_url = NEW.project_url, account = NEW.project_account,
                batch_id = NEW.project_batch_id, batch_name = NEW.name,
                kind = CASE NEW.state WHEN 'giving_up' THEN 'abort' ELSE 'submitting' END,
                due = NEW.not_before, recorded = NEW.sent
            WHERE (project_url, account, batch_id)
                = (OLD.project_url, OLD.project_account, OLD.project_batch_id);
        END
        """,
        """
        CREATE TRIGGER batch_deleted AFTER DELETE ON batch WHEN OLD.project_id IS NULL
        BEGIN
            DELETE FROM debt WHERE (project_url, account, batch_id)
                = (OLD.project_url, OLD.project_account, OLD.project_batch_id);
        END
        """,
    ),
)

VERSION: Final = len(MIGRATIONS)
