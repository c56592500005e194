"""Combines layers into settings: later files override earlier ones, key by key.

An authenticator is only used for the project for which it was given. A file that names another URL
than the files before it starts that project's table anew, and an authenticator that was given
before any URL is not used for a URL from a later file.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from boinc_gahp.config import private
from boinc_gahp.config.accounts import DEFAULT_PROJECT, section
from boinc_gahp.config.places import (
    OLD_FILE_NAME,
    default_cache_dir,
    default_state_dir,
    expand,
    settings_files,
    user_file,
)
from boinc_gahp.config.reading import (
    Layer,
    is_two_lines,
    parse_authenticator,
    read_layer,
    sections,
)
from boinc_gahp.config.settings import ProjectSettings, Settings, State
from boinc_gahp.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boinc_gahp.config.settings import HTCondor
    from boinc_gahp.secret import Authenticator


def load_layers(config_path: str | None, environ: Mapping[str, str]) -> Settings:
    """See :func:`boinc_gahp.config.load`."""
    problems: list[str] = []
    layers = _read_usual_files(problems)
    named = config_path or environ.get("BOINC_GAHP_CONFIG")
    if named:
        option = "--config" if config_path else "BOINC_GAHP_CONFIG"
        layers.append(_read_named_file(named, option))
    if not any("url" in layer.projects.get(DEFAULT_PROJECT, {}) for layer in layers):
        layers.extend(_read_old_file(problems))
    for layer in layers:
        problems.extend(layer.problems)
    return _merge(layers, problems)


def _read_usual_files(problems: list[str]) -> list[Layer]:
    layers = []
    for path in settings_files():
        try:
            file = private.read(path)
            if path == user_file():
                file.must_be_ours()
            layers.append(read_layer(file))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            problems.append(f"{path} cannot be read (permission denied) and is left out")
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return layers


def _read_named_file(named: str, option: str) -> Layer:
    try:
        path = expand(named, Path()).absolute()
        return read_layer(private.read(path))
    except ValueError as error:
        raise ConfigError(f"{option} is {named!r}; {error}") from None
    except OSError as error:
        raise ConfigError(
            f"the settings file {named} that {option} names cannot be read: {error.strerror}"
        ) from error


def _read_old_file(problems: list[str]) -> list[Layer]:
    """Return the C++ program's ``config.txt`` in the working directory, if this user owns it.

    Others may be able to write in the working directory, and the file name is common: another
    user's file could send this user's jobs elsewhere.
    """
    try:
        file = private.read(Path(OLD_FILE_NAME).absolute())
    except (OSError, ConfigError):
        return []
    if not is_two_lines(file.text):
        return []
    if file.status.st_uid != os.getuid():
        problems.append(f"{file.path} belongs to another user and is left out")
        return []
    return [read_layer(file)]


def _merge(layers: Sequence[Layer], problems: list[str]) -> Settings:
    values: dict[str, Any] = {}
    for name, cls in sections().items():
        merged: dict[str, Any] = {}
        for layer in layers:
            merged |= layer.sections.get(name, {})
        values[name] = cls(**merged)
    _check_timeouts(values["timeouts"].submit, values["timeouts"].submit_margin, layers)
    _check_polls(values["htcondor"], layers)
    state: State = values["state"]
    values["state"] = replace(
        state,
        dir=state.dir or default_state_dir(),
        cache_dir=state.cache_dir or default_cache_dir(),
    )
    names = dict.fromkeys(name for layer in layers for name in layer.projects)
    missing: dict[str, str] = {}
    projects = {name: _merge_project(name, layers, problems, missing) for name in names}
    return Settings(
        project=projects.pop(DEFAULT_PROJECT, None),
        projects={name: project for name, project in projects.items() if project is not None},
        sources=tuple(layer.path for layer in layers),
        problems=(*problems, *missing.values()),
        no_authenticator=missing,
        **values,
    )


def _check_timeouts(submit: float, margin: float, layers: Sequence[Layer]) -> None:
    if margin >= submit:
        where = ", ".join(str(each.path) for each in layers if "timeouts" in each.sections)
        raise ConfigError(
            f"{where}: submit_margin in [timeouts] is {margin:g}; it must be less than submit, "
            f"which is {submit:g}, or no batch would ever be submitted"
        )


def _check_polls(htcondor: HTCondor, layers: Sequence[Layer]) -> None:
    if htcondor.poll_shortest > htcondor.poll_longest:
        where = ", ".join(str(each.path) for each in layers if "htcondor" in each.sections)
        raise ConfigError(
            f"{where}: poll_shortest in [htcondor] is {htcondor.poll_shortest:g}; it must not be "
            f"greater than poll_longest, which is {htcondor.poll_longest:g}"
        )


def _merge_project(
    name: str, layers: Sequence[Layer], problems: list[str], missing: dict[str, str]
) -> ProjectSettings | None:
    place = section(name)
    values: dict[str, Any] = {}
    secret_from: Path | None = None
    last: Path | None = None
    for layer in layers:
        table = layer.projects.get(name)
        if table is None:
            continue
        last = layer.path
        if "url" in table and table["url"] != values.get("url"):
            if "authenticator" in values and "authenticator" not in table:
                left = ConfigError(
                    f"the authenticator that {secret_from} gives in {place} is not used: "
                    f"{layer.path}, which is read later, sets the url {table['url']}, and the "
                    "authenticator may be for another project; give the authenticator there, too, "
                    f"or that url in {secret_from}"
                )
                missing[name] = str(left)
            values.pop("authenticator", None)
            if "url" in values:
                values.clear()
        if "authenticator" in table:
            secret_from = layer.path
            missing.pop(name, None)
        values |= table
    if "url" not in values:
        problems.append(
            f"{last}: {place} has no url, here or in any other settings file: write the "
            "project's address there"
        )
        return None
    secret = values.get("authenticator")
    if isinstance(secret, Path):
        try:
            values["authenticator"] = _read_authenticator(
                secret, f"{secret_from}: {place}", problems
            )
        except ConfigError as error:
            values["authenticator"] = None
            missing[name] = str(error)
    return ProjectSettings(**values)


def _read_authenticator(path: Path, place: str, problems: list[str]) -> Authenticator:
    """Return the contents of an ``authenticator_file``.

    An admin may name the file once for all users. Users without one can still choose a project and
    an authenticator with BOINC_SELECT_PROJECT, so the error is kept until one is needed.

    Raises:
        ConfigError: it has no readable authenticator, or everyone can read it.
    """
    remedy = (
        "write your account's authenticator into it (the project's web site shows it on your "
        f"account page) and run: chmod 600 {quote(str(path))}"
    )
    try:
        file = private.read(path)
        authenticator = parse_authenticator(file.text)
    except OSError as error:
        raise ConfigError(
            f"{place} authenticator_file {path}: {error.strerror}; {remedy}"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{place} authenticator_file {path}: {error}; {remedy}") from None
    warning = file.must_be_private()
    if warning is not None:
        problems.append(warning)
    return authenticator
