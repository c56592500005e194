-- Container apps (``containers.rst``). A version whose plan class has "docker" in its name goes only
-- to hosts with a container engine.
ALTER TABLE app_version ADD COLUMN plan_class TEXT NOT NULL DEFAULT '';

-- BOINC's number: 80300 is 8.3.0. docker_version: the engine's name and version; '': there is none;
-- NULL: the host has not looked for one in this run, for nobody needed it. dont_use_docker: the
-- host has one, and does not offer it.
ALTER TABLE host ADD COLUMN core_client_version INTEGER NOT NULL DEFAULT 72005;
ALTER TABLE host ADD COLUMN docker_version TEXT;
ALTER TABLE host ADD COLUMN dont_use_docker INTEGER NOT NULL DEFAULT 0;

-- Images that hosts of this project have built, and that are removed when it ends; names as in
-- job.toml.
CREATE TABLE image (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;
