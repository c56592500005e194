"""Makes an app from the names of its files: finds its command, writes and checks its templates."""

from __future__ import annotations

import json
import os.path
import re
import shlex
import shutil
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.files import write_whole
from boinc_gahp.localproject import buda, supplied
from boinc_gahp.localproject.accounts import write_settings
from boinc_gahp.localproject.backend import plugins
from boinc_gahp.localproject.core import fill_in
from boinc_gahp.localproject.hosts.engine import BUDA, CONTAINERS, container_apps
from boinc_gahp.localproject.store import md5_file
from boinc_gahp.templates.types import InputTemplate, OutputTemplate, safe_open_name
from boinc_gahp.templates.writing import write_input_template, write_output_template

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from boinc_gahp.localproject.core import Core, Database

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}")
#: Programs whose first argument is usually a script.
_INTERPRETER = re.compile(r"(python|perl|ruby|node|julia|Rscript|(ba|da|k|z)?sh)[0-9.]*")
#: How many results beyond its quorum a job may have without agreement, in error, in all.
_MORE = {"max_success_results": 2, "max_error_results": 1, "max_total_results": 4}


@dataclass(frozen=True, slots=True)
class NewApp:
    """An admin's description of a new app.

    Attributes:
        name: ``buda:NAME`` for a BUDA app, which has a Dockerfile and files instead of a command.
        command: program and arguments, as typed in a shell.
        container: its program is BOINC's docker_wrapper, and each job brings everything else: there
            is no command, and no template.
        inputs: open names of the input files.
        outputs: open names of the output files, and whether each is optional.
        max_nbytes: of each output, in bytes.
        validator, assimilator, work_generator: as :mod:`.plugins` reads them.
    """

    name: str
    command: str = ""
    container: bool = False
    dockerfile: Path | None = None
    files: tuple[Path, ...] = ()
    version: int = 100
    inputs: tuple[str, ...] = ()
    outputs: tuple[tuple[str, bool], ...] = ()
    max_nbytes: float = 5e6
    quorum: int = 1
    validator: str = "trivial"
    assimilator: str = ""
    work_generator: str = ""
    work_low: int = 10


def add(core: Core, app: NewApp) -> tuple[str, list[Path]]:
    """Add an app, or another version if there is an app with that name.

    Returns:
        The command as stored, and the files written.

    Raises:
        ValueError: a value in the description is wrong; nothing was added.
        LocalProjectTrouble: a validator, assimilator or work generator cannot be loaded.
    """
    if app.name.startswith(buda.PREFIX):
        return _add_buda_app(core, app)
    if not _NAME.fullmatch(app.name):
        raise ValueError(
            f"an app cannot be named {app.name!r}: expected letters, digits, '_', '-' and '.', at "
            "most 100 of them"
        )
    words = [] if app.container else _command(core, app)
    connection = core.db.connection()
    if connection.execute("SELECT 1 FROM app WHERE name = ?", (app.name,)).fetchone():
        if app.inputs or app.outputs:
            raise ValueError(
                f"there is an app {app.name!r} already: to add a version, give only --version and "
                f"--command; to change its templates, edit {core.templates}/{app.name}_in and "
                f"{app.name}_out"
            )
        if app.container:
            raise ValueError(f"there is an app {app.name!r} already: give another name")
        if app.name in container_apps(connection):
            raise ValueError(f"{app.name!r} is a container app: it has one version only")
        _add_version(core.db, app.name, app.version, words)
        return shlex.join(words), []
    if app.container:
        return _add_container_app(core, app)
    made = _made_templates(app)
    _check_plugins(core, app)
    insert(core, app, words, made)
    return shlex.join(words), [core.templates / f"{app.name}_{kind}" for kind in ("in", "out")]


def _check_plugins(core: Core, app: NewApp) -> None:
    for spec, group in (
        (app.validator, plugins.VALIDATORS),
        (app.assimilator, plugins.ASSIMILATORS),
        (app.work_generator, plugins.WORK_GENERATORS),
    ):
        if spec:
            plugins.load(core, spec, group)


def _add_container_app(core: Core, app: NewApp) -> tuple[str, list[Path]]:
    """Add an app without templates: one called NAME_in would apply to every job."""
    left = [
        str(path)
        for kind in ("in", "out")
        if (path := core.templates / f"{app.name}_{kind}").exists()
    ]
    if left:
        raise ValueError(
            f"{' and '.join(left)} would apply to every job: remove it, or give another name"
        )
    _check_plugins(core, app)
    description = "any program, in a container that each job describes"
    insert(core, app, supplied.WRAPPER, description=description, plan_class=CONTAINERS)
    write_settings(core.directory, core.db.connection(), core.url)
    return shlex.join(supplied.WRAPPER), []


def _add_buda_app(core: Core, app: NewApp) -> tuple[str, list[Path]]:
    _check_names(app)
    written = buda.add(core, app)
    connection = core.db.connection()
    if not connection.execute("SELECT 1 FROM app WHERE name = ?", (BUDA,)).fetchone():
        # All of them belong to one app.
        description = "BUDA apps, in containers"
        made = NewApp(BUDA)
        insert(core, made, supplied.WRAPPER, description=description, plan_class=CONTAINERS)
    return shlex.join(supplied.WRAPPER), written


def insert(
    core: Core,
    app: NewApp,
    command: Sequence[str],
    templates: tuple[InputTemplate | None, OutputTemplate | None] = (None, None),
    *,
    description: str = "",
    plan_class: str = "",
) -> None:
    """Add an app with a command as hosts run it, and its two templates.

    Without a template, each job has to bring its own. ``plan_class`` is the version's.

    Raises:
        ValueError: the name is taken.
        TemplateError: a template cannot be written.
    """
    input_template, output_template = templates
    texts = {
        "in": input_template and write_input_template(input_template),
        "out": output_template and write_output_template(output_template),
    }
    columns = {
        "name": app.name,
        "user_friendly_name": description,
        "validator": app.validator,
        "assimilator": app.assimilator,
        "work_generator": app.work_generator,
        "work_low": app.work_low,
    }
    with core.db.write() as connection:
        if connection.execute("SELECT 1 FROM app WHERE name = ?", (app.name,)).fetchone():
            raise ValueError(f"there is an app {app.name!r} already")
        cursor = connection.execute(
            f"INSERT INTO app (create_time, {', '.join(columns)}) "  # noqa: S608
            f"VALUES (?{', ?' * len(columns)})",
            (time.time(), *columns.values()),
        )
        _insert_version(connection, cursor.lastrowid or 0, app.version, command, plan_class)
        for kind, text in texts.items():
            if text:
                write_whole(core.templates / f"{app.name}_{kind}", text)


def _add_version(database: Database, name: str, version: int, command: Sequence[str]) -> None:
    """Add another version of an app; hosts run the newest unless a job wants another."""
    with database.write() as connection:
        row = connection.execute(
            "SELECT a.id, group_concat(v.version_num, ', ') AS present, "
            "total(v.version_num = ?) AS taken "
            "FROM app a JOIN app_version v ON v.appid = a.id WHERE a.name = ?",
            (version, name),
        ).fetchone()
        if row["taken"]:
            raise ValueError(
                f"app {name!r} has a version {version} already (it has {row['present']}): give "
                "another number"
            )
        _insert_version(connection, row["id"], version, command)


def _insert_version(
    connection: sqlite3.Connection,
    app_id: int,
    version: int,
    command: Sequence[str],
    plan_class: str = "",
) -> None:
    connection.execute(
        "INSERT OR IGNORE INTO app_version "
        "(create_time, appid, version_num, command, plan_class, digest) VALUES (?, ?, ?, ?, ?, ?)",
        (time.time(), app_id, version, json.dumps(list(command)), plan_class, _digest(command)),
    )


def renew_versions(database: Database) -> None:
    """Add a version of each app whose program has changed, as a real project's admin does."""
    newest = "SELECT *, max(version_num) FROM app_version GROUP BY appid"
    for row in database.connection().execute(newest).fetchall():
        command = json.loads(row["command"])
        if _digest(command) != row["digest"]:
            with database.write() as connection:
                version = row["version_num"] + 1
                _insert_version(connection, row["appid"], version, command, row["plan_class"])


def _digest(command: Iterable[str]) -> str:
    """Return what identifies the contents of the files that a command names."""
    paths = (Path(word) for word in command if word.startswith("/"))
    found = [
        _md5(str(path), status.st_size, status.st_mtime_ns)
        for path in paths
        if path.is_file() and (status := path.stat())
    ]
    return " ".join(found)


@lru_cache(maxsize=1000)
def _md5(path: str, _size: int, _mtime_ns: int) -> str:
    return md5_file(Path(path))[0]


def _command(core: Core, app: NewApp) -> list[str]:
    """Split a command, and make its file names full paths: it runs in another directory."""
    try:
        words = shlex.split(app.command)
    except ValueError as error:
        raise ValueError(f"the command {app.command!r} cannot be split: {error}") from error
    if not words:
        raise ValueError("the command is empty: expected a program and its arguments")
    program = fill_in(words[0], core.directory)
    found = shutil.which(program)
    if found is None:
        where = "it is not an executable file" if "/" in program else "it is not in the PATH"
        raise ValueError(f"the program {program!r} cannot be run: {where}")
    if not words[0].startswith("{"):
        words[0] = str(Path(found).absolute())
    names = {*app.inputs, *(name for name, _ in app.outputs)}
    script = words[1] if _INTERPRETER.fullmatch(Path(program).name) and words[1:] else "-"
    is_file = script in names or script.startswith(("-", "{")) or Path(script).is_file()
    if not is_file:
        raise ValueError(f"the script {script!r} of the command is not there: correct its path")
    for place, word in enumerate(words[1:], 1):
        # A text too long for a file's name would be an error in pathlib's method.
        there = os.path.isfile(word)  # noqa: PTH113
        if there and word not in names and not word.startswith(("-", "{", "/")):
            words[place] = str(Path(word).absolute())
    return words


def _made_templates(app: NewApp) -> tuple[InputTemplate, OutputTemplate]:
    if not app.outputs:
        raise ValueError("the app has no output file: name at least one (--out)")
    _check_names(app)
    made = supplied.input_template(*app.inputs)
    limits = {name: max(getattr(made, name), app.quorum + more) for name, more in _MORE.items()}
    template = replace(
        made,
        files=tuple(replace(file, copy_file=False) for file in made.files),
        min_quorum=app.quorum,
        target_nresults=app.quorum,
        **limits,
    )
    output = supplied.output_template(
        *(name for name, _ in app.outputs),
        optional=tuple(name for name, optional in app.outputs if optional),
        max_nbytes=app.max_nbytes,
    )
    files = tuple(replace(file, copy_file=False) for file in output.files)
    return template, replace(output, files=files)


def _check_names(app: NewApp) -> None:
    for names in (app.inputs, tuple(name for name, _ in app.outputs)):
        for name in names:
            if not safe_open_name(name):
                raise ValueError(f"{name!r} leads out of the job's directory: expected a file name")
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is given twice: expected different names")
