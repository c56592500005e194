-- What plug-ins, assigned jobs, size classes and misbehaving hosts need. Columns of our own:
-- app.validator, assimilator, work_generator, work_low; workunit.failures, retry_time; the tables
-- behaviour and program.

ALTER TABLE app ADD COLUMN n_size_classes INTEGER NOT NULL DEFAULT 0;
-- 'trivial', 'bitwise', the name of an entry point, or module:function.
ALTER TABLE app ADD COLUMN validator TEXT NOT NULL DEFAULT 'trivial';
-- The name of an entry point, or module:function; '': nothing is done with finished workunits.
ALTER TABLE app ADD COLUMN assimilator TEXT NOT NULL DEFAULT '';
-- Likewise; it is asked for jobs while fewer than work_low results of the app are unsent.
ALTER TABLE app ADD COLUMN work_generator TEXT NOT NULL DEFAULT '';
ALTER TABLE app ADD COLUMN work_low INTEGER NOT NULL DEFAULT 10;

-- How often a validator or an assimilator of ours has raised for this workunit, and when it is
-- called again.
ALTER TABLE workunit ADD COLUMN failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workunit ADD COLUMN retry_time REAL NOT NULL DEFAULT 0;

ALTER TABLE result ADD COLUMN size_class INTEGER NOT NULL DEFAULT -1;
CREATE INDEX res_inactive ON result (appid, size_class, id) WHERE server_state = 1;

-- target_type: 1 a host, 2 a user; a workunit with rows here goes to nobody else.
CREATE TABLE assignment (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    create_time INTEGER NOT NULL,
    target_type INTEGER NOT NULL,
    target_id INTEGER NOT NULL,
    workunitid INTEGER NOT NULL REFERENCES workunit (id)
);
CREATE INDEX asg_wu ON assignment (workunitid);

-- What hosts have been told to do wrong. hostid 0: every host; name_key '': every job. times: how
-- many results it is still for; NULL: all.
CREATE TABLE behaviour (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    hostid INTEGER NOT NULL DEFAULT 0,
    name_key TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL,
    value REAL NOT NULL DEFAULT 0,
    times INTEGER
);

-- The work of each back-end program, for people.
CREATE TABLE program (
    name TEXT PRIMARY KEY,
    passes INTEGER NOT NULL DEFAULT 0,
    handled INTEGER NOT NULL DEFAULT 0,
    last_time REAL NOT NULL DEFAULT 0,
    last_seconds REAL NOT NULL DEFAULT 0,
    last_handled INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT ''
);

-- How often in a row an app's work generator has failed, with what, and when it is asked again.
ALTER TABLE app ADD COLUMN work_failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE app ADD COLUMN work_error TEXT NOT NULL DEFAULT '';
ALTER TABLE app ADD COLUMN work_retry_time REAL NOT NULL DEFAULT 0;

-- active: whether the host works in this run; its speed stays when it does not. files: the physical
-- names of the sticky files it has, one a line, as it reported them last.
ALTER TABLE host ADD COLUMN active INTEGER NOT NULL DEFAULT 1;
ALTER TABLE host ADD COLUMN files TEXT NOT NULL DEFAULT '';
UPDATE host SET active = 0, p_fpops = 1e9 WHERE p_fpops = 0;

-- behaviour: what the host was told to do wrong with this result. refusals: how many requests could
-- not have it because of its bounds.
ALTER TABLE result ADD COLUMN behaviour TEXT NOT NULL DEFAULT '';
ALTER TABLE result ADD COLUMN refusals INTEGER NOT NULL DEFAULT 0;

-- The workunits that a program of ours failed with, and tries again later.
CREATE INDEX wu_failing ON workunit (id) WHERE failures > 0;

-- The scheduler goes through the unsent results, and what they need, in these indexes alone: the
-- rows themselves have documents of up to 64 KB.
DROP INDEX res_unsent;
CREATE INDEX res_unsent ON result (priority DESC, id, workunitid, appid, refusals)
    WHERE server_state = 2;
CREATE INDEX wu_bounds ON workunit (id, rsc_memory_bound, rsc_disk_bound, rsc_bandwidth_bound,
    rsc_fpops_est, delay_bound, size_class);

-- For counting a batch's jobs by state without reading their documents.
CREATE INDEX wu_state ON workunit (batch, error_mask, canonical_resultid);
