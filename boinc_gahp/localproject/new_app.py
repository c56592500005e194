"""Makes an app from the names of its files: finds its command, writes and checks its templates."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.localproject import supplied
from boinc_gahp.localproject.backend import plugins
from boinc_gahp.localproject.buda import PREFIX, BudaApp
from boinc_gahp.localproject.directory import (
    add_app,
    add_app_version,
    add_buda_app,
    add_container_app,
)
from boinc_gahp.localproject.hosts.command_line import fill_in
from boinc_gahp.localproject.hosts.engine import container_apps
from boinc_gahp.templates.checking import check_template
from boinc_gahp.templates.types import Severity, safe_open_name
from boinc_gahp.templates.writing import write_input_template, write_output_template

if TYPE_CHECKING:
    from collections.abc import Iterable

    from boinc_gahp.localproject.core import Core

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,99}")
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
    n_size_classes: int = 0
    validator: str = "trivial"
    assimilator: str = ""
    work_generator: str = ""
    work_low: int = 10


@dataclass(frozen=True, slots=True)
class Added:
    """The result: the command as stored, files written, warnings about its templates."""

    words: str
    written: tuple[Path, ...] = ()
    warnings: tuple[str, ...] = ()


def add(core: Core, app: NewApp) -> Added:
    """Add an app, or another version if there is an app with that name.

    Raises:
        ValueError: a value in the description is wrong; nothing was added.
        PluginError: a validator, assimilator or work generator cannot be loaded.
    """
    if app.name.startswith(PREFIX):
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
        add_app_version(core.db, app.name, app.version, words)
        return Added(shlex.join(words))
    if app.container:
        return _add_container_app(core, app)
    made = _made_templates(app)
    warnings = [*_check("input", made[0]), *_check("output", made[1])]
    _check_plugins(core, app)
    add_app(
        core.directory,
        core.db,
        app.name,
        command=words,
        input_template=made[0],
        output_template=made[1],
        version=app.version,
        validator=app.validator,
        assimilator=app.assimilator,
        work_generator=app.work_generator,
        work_low=app.work_low,
        n_size_classes=app.n_size_classes,
    )
    written = tuple(core.templates / f"{app.name}_{kind}" for kind in ("in", "out"))
    return Added(shlex.join(words), written, tuple(warnings))


def _check_plugins(core: Core, app: NewApp) -> None:
    for spec, group in (
        (app.validator, plugins.VALIDATORS),
        (app.assimilator, plugins.ASSIMILATORS),
        (app.work_generator, plugins.WORK_GENERATORS),
    ):
        if spec:
            plugins.load(core, spec, group)


def _add_container_app(core: Core, app: NewApp) -> Added:
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
    add_container_app(
        core.directory,
        core.db,
        app.name,
        version=app.version,
        validator=app.validator,
        assimilator=app.assimilator,
    )
    return Added(shlex.join(supplied.WRAPPER))


def _add_buda_app(core: Core, app: NewApp) -> Added:
    outputs = tuple(name for name, _ in app.outputs)
    for names in (app.inputs, outputs):
        _check_names(names)
    if app.dockerfile is None:
        raise ValueError("a BUDA app has a Dockerfile, from which hosts build its image: name it")
    name = app.name.removeprefix(PREFIX)
    described = BudaApp(name, app.dockerfile, app.files, app.inputs, outputs, app.max_nbytes)
    return Added(shlex.join(supplied.WRAPPER), tuple(add_buda_app(core, described)))


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
    for place, word in enumerate(words[1:], 1):
        if word not in names and not word.startswith(("-", "{", "/")) and Path(word).is_file():
            words[place] = str(Path(word).absolute())
    return words


def _made_templates(app: NewApp) -> tuple[str, str]:
    if not app.outputs:
        raise ValueError("the app has no output file: name at least one (--out)")
    outputs = tuple(name for name, _ in app.outputs)
    for names in (app.inputs, outputs):
        _check_names(names)
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
        *outputs,
        optional=tuple(name for name, optional in app.outputs if optional),
        max_nbytes=app.max_nbytes,
    )
    output = replace(output, files=tuple(replace(file, copy_file=False) for file in output.files))
    return write_input_template(template), write_output_template(output)


def _check_names(names: Iterable[str]) -> None:
    seen = set()
    for name in names:
        if not safe_open_name(name):
            raise ValueError(f"{name!r} leads out of the job's directory: expected a file name")
        if name in seen:
            raise ValueError(f"{name!r} is given twice: expected different names")
        seen.add(name)


def _check(kind: str, text: str) -> list[str]:
    """Return the warnings about a template.

    Raises:
        ValueError: it has errors.
    """
    problems = check_template(text)
    errors = [str(problem) for problem in problems if problem.severity is Severity.ERROR]
    if errors:
        raise ValueError(f"{kind} template: {'; '.join(errors)}")
    return [f"{kind} template: {problem}" for problem in problems]
