-- BOINC's tables, column names and values (db/schema.sql and schema_condor.sql of the real server),
-- as far as this project uses them. Times are seconds since the epoch. Of our own are the columns
-- name_key, mod_time as a number, app.validator, assimilator, work_generator and work_*,
-- app_version.command and digest, workunit.retry_time, result.behaviour, host.active; and
-- the tables behaviour, program and image.

CREATE TABLE app (
    id INTEGER PRIMARY KEY,
    create_time REAL NOT NULL,
    name TEXT NOT NULL UNIQUE,
    user_friendly_name TEXT NOT NULL DEFAULT '',
    deprecated INTEGER NOT NULL DEFAULT 0,
    -- 'trivial', 'bitwise', or module:function.
    validator TEXT NOT NULL DEFAULT 'trivial',
    -- module:function; '': nothing is done with finished workunits.
    assimilator TEXT NOT NULL DEFAULT '',
    -- Likewise; it is asked for jobs while fewer than work_low results of the app are unsent.
    work_generator TEXT NOT NULL DEFAULT '',
    work_low INTEGER NOT NULL DEFAULT 10,
    -- When it is asked again if it had none, or failed.
    work_retry_time REAL NOT NULL DEFAULT 0
);

-- command: the program that a volunteer starts, a JSON list; {python} is this interpreter, {apps}
-- the directory of the supplied apps, {project} the project's directory. A version whose plan_class
-- has "docker" in its name goes only to hosts with a container engine (``containers.rst``).
CREATE TABLE app_version (
    id INTEGER PRIMARY KEY,
    create_time REAL NOT NULL,
    appid INTEGER NOT NULL REFERENCES app (id),
    version_num INTEGER NOT NULL,
    command TEXT NOT NULL,
    plan_class TEXT NOT NULL DEFAULT '',
    -- Of the files that the command names.
    digest TEXT NOT NULL,
    UNIQUE (appid, version_num)
);

-- For lookup_account.php: email_addr is in lower case, '' if there is none; passwd_hash is salt and
-- digest of what clients make of a password.
CREATE TABLE user (
    id INTEGER PRIMARY KEY,
    create_time REAL NOT NULL,
    name TEXT NOT NULL UNIQUE,
    authenticator TEXT NOT NULL UNIQUE,
    total_credit REAL NOT NULL DEFAULT 0,
    email_addr TEXT NOT NULL DEFAULT '',
    passwd_hash TEXT NOT NULL DEFAULT ''
);

CREATE TABLE user_submit (
    user_id INTEGER PRIMARY KEY REFERENCES user (id),
    submit_all INTEGER NOT NULL DEFAULT 0,
    manage_all INTEGER NOT NULL DEFAULT 0,
    max_jobs_in_progress INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE user_submit_app (
    user_id INTEGER NOT NULL REFERENCES user (id),
    app_id INTEGER NOT NULL REFERENCES app (id),
    manage INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (user_id, app_id)
);

-- active: whether the host works in this run; its speed stays when it does not. core_client_version:
-- as BOINC's number, 80300 is 8.3.0. docker_version: the engine's name and version; '': there is none;
-- NULL: the host has not looked for one in this run, for nobody needed it. dont_use_docker: the host
-- has one, and does not offer it.
CREATE TABLE host (
    id INTEGER PRIMARY KEY,
    create_time REAL NOT NULL,
    userid INTEGER NOT NULL,
    domain_name TEXT NOT NULL UNIQUE,
    p_fpops REAL NOT NULL,
    m_nbytes REAL NOT NULL,
    d_free REAL NOT NULL,
    n_bwdown REAL NOT NULL,
    rpc_time REAL NOT NULL DEFAULT 0,
    total_credit REAL NOT NULL DEFAULT 0,
    active INTEGER NOT NULL DEFAULT 1,
    core_client_version INTEGER NOT NULL DEFAULT 72005,
    docker_version TEXT,
    dont_use_docker INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE batch (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    create_time REAL NOT NULL,
    logical_start_time REAL NOT NULL DEFAULT 0,
    logical_end_time REAL NOT NULL DEFAULT 0,
    est_completion_time REAL NOT NULL DEFAULT 0,
    njobs INTEGER NOT NULL DEFAULT 0,
    fraction_done REAL NOT NULL DEFAULT 0,
    nerror_jobs INTEGER NOT NULL DEFAULT 0,
    state INTEGER NOT NULL DEFAULT 0,
    completion_time REAL NOT NULL DEFAULT 0,
    credit_estimate REAL NOT NULL DEFAULT 0,
    credit_canonical REAL NOT NULL DEFAULT 0,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    app_id INTEGER NOT NULL,
    description TEXT NOT NULL DEFAULT '',
    expire_time REAL NOT NULL DEFAULT 0
);
CREATE INDEX batch_name ON batch (name_key, id);
CREATE INDEX batch_user ON batch (user_id);

-- retry_time: when a validator or an assimilator of ours that has raised for it is called again.
CREATE TABLE workunit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    create_time INTEGER NOT NULL,
    appid INTEGER NOT NULL,
    name TEXT NOT NULL,
    name_key TEXT NOT NULL UNIQUE,
    xml_doc TEXT NOT NULL,
    batch INTEGER NOT NULL,
    rsc_fpops_est REAL NOT NULL,
    rsc_fpops_bound REAL NOT NULL,
    rsc_memory_bound REAL NOT NULL,
    rsc_disk_bound REAL NOT NULL,
    rsc_bandwidth_bound REAL NOT NULL DEFAULT 0,
    need_validate INTEGER NOT NULL DEFAULT 0,
    canonical_resultid INTEGER NOT NULL DEFAULT 0,
    canonical_credit REAL NOT NULL DEFAULT 0,
    transition_time REAL NOT NULL,
    delay_bound REAL NOT NULL,
    error_mask INTEGER NOT NULL DEFAULT 0,
    file_delete_state INTEGER NOT NULL DEFAULT 0,
    assimilate_state INTEGER NOT NULL DEFAULT 0,
    min_quorum INTEGER NOT NULL,
    target_nresults INTEGER NOT NULL,
    max_error_results INTEGER NOT NULL,
    max_total_results INTEGER NOT NULL,
    max_success_results INTEGER NOT NULL,
    result_template_file TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    size_class INTEGER NOT NULL DEFAULT -1,
    app_version_num INTEGER NOT NULL DEFAULT 0,
    mod_time REAL NOT NULL,
    retry_time REAL NOT NULL DEFAULT 0
);
CREATE INDEX wu_batch ON workunit (batch, id);
CREATE INDEX wu_timeout ON workunit (transition_time);
CREATE INDEX wu_val ON workunit (id) WHERE need_validate = 1;
CREATE INDEX wu_assim ON workunit (id) WHERE assimilate_state = 1;
CREATE INDEX wu_filedel ON workunit (id) WHERE file_delete_state = 1;
-- The scheduler goes through the unsent results, and what they need, in this index and res_unsent
-- alone: the rows themselves have documents of up to 64 KB.
CREATE INDEX wu_bounds ON workunit (id, rsc_memory_bound, rsc_disk_bound, rsc_bandwidth_bound,
    rsc_fpops_est, delay_bound);
-- For counting a batch's jobs and its credit without reading their documents.
CREATE INDEX wu_state ON workunit (batch, error_mask, canonical_resultid, canonical_credit);

-- behaviour: what the host was told to do wrong with this result.
CREATE TABLE result (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    create_time INTEGER NOT NULL,
    workunitid INTEGER NOT NULL REFERENCES workunit (id),
    server_state INTEGER NOT NULL,
    outcome INTEGER NOT NULL DEFAULT 0,
    client_state INTEGER NOT NULL DEFAULT 0,
    hostid INTEGER NOT NULL DEFAULT 0,
    userid INTEGER NOT NULL DEFAULT 0,
    report_deadline REAL NOT NULL DEFAULT 0,
    sent_time REAL NOT NULL DEFAULT 0,
    received_time REAL NOT NULL DEFAULT 0,
    name TEXT NOT NULL UNIQUE,
    cpu_time REAL NOT NULL DEFAULT 0,
    elapsed_time REAL NOT NULL DEFAULT 0,
    xml_doc_in TEXT NOT NULL,
    xml_doc_out TEXT NOT NULL DEFAULT '',
    stderr_out TEXT NOT NULL DEFAULT '',
    batch INTEGER NOT NULL,
    file_delete_state INTEGER NOT NULL DEFAULT 0,
    validate_state INTEGER NOT NULL DEFAULT 0,
    claimed_credit REAL NOT NULL DEFAULT 0,
    granted_credit REAL NOT NULL DEFAULT 0,
    random INTEGER NOT NULL,
    app_version_num INTEGER NOT NULL DEFAULT 0,
    appid INTEGER NOT NULL,
    exit_status INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL DEFAULT 0,
    behaviour TEXT NOT NULL DEFAULT ''
);
CREATE INDEX res_wuid ON result (workunitid, server_state, outcome);
CREATE INDEX res_unsent ON result (priority DESC, id, workunitid, appid)
    WHERE server_state = 2;
CREATE INDEX res_host ON result (hostid) WHERE server_state = 4;
CREATE INDEX res_filedel ON result (id) WHERE file_delete_state = 1;

CREATE TABLE job_file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    create_time REAL NOT NULL,
    delete_time REAL NOT NULL
);

CREATE TABLE batch_file_assoc (
    batch_id INTEGER NOT NULL,
    job_file_id INTEGER NOT NULL REFERENCES job_file (id),
    PRIMARY KEY (job_file_id, batch_id)
);
CREATE INDEX bfa_batch ON batch_file_assoc (batch_id);

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
    handled INTEGER NOT NULL DEFAULT 0,
    -- The last one, and when it was.
    error TEXT NOT NULL DEFAULT '',
    error_time REAL NOT NULL DEFAULT 0
);

-- Images that hosts of this project have built, and that are removed when it ends; names as in
-- job.toml.
CREATE TABLE image (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;
