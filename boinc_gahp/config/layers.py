"""Combines layers into settings: later files override earlier ones, key by key.

An authenticator is only used for the URL for which it was given: not for one from a later file. A
file that names the URL of another project than the files before it starts that table anew.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar

from boinc_gahp.config import _private
from boinc_gahp.config._reading import (
    Layer,
    is_image_file,
    is_two_lines,
    parse_authenticator,
    read_layer,
    sections,
)
from boinc_gahp.config.accounts import DEFAULT_PROJECT, section
from boinc_gahp.config.places import (
    FILE_NAME,
    OLD_FILE_NAME,
    PROJECTS_DIR,
    TrustedPath,
    default_cache_dir,
    default_state_dir,
    expand,
    settings_directories,
    user_directory,
)
from boinc_gahp.config.settings import ProjectSettings, Settings, State
from boinc_gahp.config.urls import are_one_project
from boinc_gahp.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from boinc_gahp.config.settings import HTCondor, Timeouts
    from boinc_gahp.secret import Authenticator

T = TypeVar("T")

#: What another user's settings file never sets: where this user's files are read and written, and
#: who can read what is sent.
_OWN_SECTIONS = frozenset({"logging", "state", "trust"})
_OWN_KEYS = {"ca_bundle", "proxy"}
_OWN_KEYS |= {"publish_directory", "publish_url", "publish_above", "publish_never"}


def load(config_path: str | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of all files; later files override earlier ones.

    The files are ``/etc/boinc_gahp/boinc_gahp.toml``, those of the site's configuration
    directories, the user's own, each with ``projects.d/*.toml`` beside it, and ``config_path`` or
    else the file named by ``BOINC_GAHP_CONFIG`` in ``environ``; all but the last may be missing. If
    none of them names a project, ``config.txt`` in the working directory is read. The directories
    are those of platformdirs for this process.

    A named file of another user is only used if ``config_path`` is a :class:`TrustedPath`, or
    ``[trust] config_of`` of the files before names the user.

    Raises:
        ConfigError: a file cannot be read, is not safe, or has something that is not a setting.
    """
    problems: list[str] = []
    layers = _read_usual_files(problems)
    named = config_path or environ.get("BOINC_GAHP_CONFIG")
    if named:
        option = "BOINC_GAHP_CONFIG" if named == environ.get("BOINC_GAHP_CONFIG") else "--config"
        trusted = [each.sections.get("trust", {}).get("config_of") for each in layers]
        layers.append(_read_named_file(named, option, trusted))
    if not any("url" in layer.projects.get(DEFAULT_PROJECT, {}) for layer in layers):
        layers.extend(_read_old_file(problems))
    for layer in layers:
        problems.extend(layer.problems)
    return _merge(layers, problems)


def _read_usual_files(problems: list[str]) -> list[Layer]:
    layers = []
    for directory in settings_directories():
        more = directory / PROJECTS_DIR
        names = sorted(_tried(more, os.listdir, problems) or ())
        names = [each for each in names if each.endswith(".toml") and not each.startswith(".")]
        for path in (directory / FILE_NAME, *(more / name for name in names)):
            file = _tried(path, _private.read, problems)
            if file is not None:
                if directory == user_directory():
                    file.must_be_ours("move it away")
                layers.append(read_layer(file))
    return layers


def _tried(path: Path, read: Callable[[Path], T], problems: list[str]) -> T | None:
    """Return what is read; None if it is missing, or may not be read, which is a problem."""
    try:
        return read(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except PermissionError:
        problems.append(f"{path} cannot be read (permission denied) and is left out")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return None


def _read_named_file(named: str, option: str, trusted: Sequence[str | None]) -> Layer:
    try:
        file = _private.read(expand(named, Path()).absolute())
        if not isinstance(named, TrustedPath) and file.owner not in trusted:
            file.must_be_ours(
                "copy it, and read the copy; or, if you trust that user, add --trust-config to "
                f'the command, or write config_of = "{file.owner}" into the section [trust] of '
                "your own settings or the admin's"
            )
        layer = read_layer(file)
    except ValueError as error:
        raise ConfigError(f"{option} is {named!r}; {error}") from None
    except OSError as error:
        raise ConfigError(
            f"the settings file {named} that {option} names cannot be read: {error.strerror}"
        ) from error
    if file.belongs_to_another():
        _refuse_what_is_ours(layer, file.owner)
    return layer


def _refuse_what_is_ours(layer: Layer, owner: str) -> None:
    """Refuse settings that name files of this user, or who sees what is sent, to another user.

    Raises:
        ConfigError: the file has one of them.
    """
    found = [f"[{name}]" for name in _OWN_SECTIONS & layer.sections.keys()]
    for name, table in layer.projects.items():
        keys = _OWN_KEYS & table.keys()
        if isinstance(table.get("authenticator"), Path):
            keys.add("authenticator_file")
        if is_image_file(table.get("container_image", "")):
            keys.add("container_image")
        found += [f"{key} in {section(name)}" for key in keys]
    if found:
        raise ConfigError(
            f"{layer.path} belongs to user {owner}, and another user's file must not set "
            f"{', '.join(sorted(found))}: copy the file, or put that into your own settings"
        )


def _read_old_file(problems: list[str]) -> list[Layer]:
    """Return the C++ program's ``config.txt`` in the working directory, if this user owns it.

    Others may be able to write in the working directory, and the file name is common: another
    user's file could send this user's jobs elsewhere.
    """
    try:
        file = _private.read(Path(OLD_FILE_NAME).absolute())
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
    timeouts: Timeouts = values["timeouts"]
    if timeouts.submit_margin >= timeouts.submit:
        raise ConfigError(
            f"{_with(layers, 'timeouts')}: submit_margin in [timeouts] is "
            f"{timeouts.submit_margin:g}; it must be less than submit, which is "
            f"{timeouts.submit:g}, or no batch would ever be submitted"
        )
    htcondor: HTCondor = values["htcondor"]
    if htcondor.poll_shortest > htcondor.poll_longest:
        raise ConfigError(
            f"{_with(layers, 'htcondor')}: poll_shortest in [htcondor] is "
            f"{htcondor.poll_shortest:g}; it must not be greater than poll_longest, which is "
            f"{htcondor.poll_longest:g}"
        )
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
        project_files={
            name: tuple(layer.path for layer in layers if name in layer.projects) for name in names
        },
        problems=(*problems, *missing.values()),
        no_authenticator=missing,
        **values,
    )


def _with(layers: Sequence[Layer], section_name: str) -> str:
    """Return the files that have a section."""
    return ", ".join(str(each.path) for each in layers if section_name in each.sections)


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
            if "url" in values and not are_one_project(values["url"], table["url"]):
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
        ConfigError: it has no readable authenticator, or more than that, or everyone can read or
            write it.
    """
    remedy = (
        "write your account's authenticator into it (the project's web site shows it on your "
        f"account page) and run: chmod 600 {quote(str(path))}"
    )
    try:
        file = _private.read(path)
        authenticator = parse_authenticator(file.text)
    except OSError as error:
        raise ConfigError(
            f"{place} authenticator_file {path}: {error.strerror}; {remedy}"
        ) from error
    except ValueError as error:
        raise ConfigError(f"{place} authenticator_file {path}: {error}; {remedy}") from None
    # As a line of a settings file has it.
    if len(file.text.split()) > 1 or re.match(r"\s*(\w+=|[\"'])", file.text):
        raise ConfigError(
            f"{place} authenticator_file: only the key belongs into {path}, without quotation marks"
        )
    warning = file.must_be_private()
    if warning is not None:
        problems.append(warning)
    return authenticator
