"""Writes the account of a project into a settings file of its own, in ``projects.d``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.config.accounts import DEFAULT_PROJECT, named_projects, section
from boinc_gahp.config.places import PROJECTS_DIR, user_directory
from boinc_gahp.config.urls import are_one_project
from boinc_gahp.errors import ConfigError
from boinc_gahp.files import make_private_directory, write_whole

if TYPE_CHECKING:
    from pathlib import Path

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.config.urls import ProjectUrl
    from boinc_gahp.secret import Authenticator

#: The name of the default project's file, and for ``--name``.
_DEFAULT = "default"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,63}")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_\-]")
#: Parts of addresses that do not tell projects apart.
_COMMON = frozenset({"www", "boinc"})


@dataclass(frozen=True, slots=True)
class AccountEntry:
    """Where a project's account is written.

    Attributes:
        file: the file of settings, of this project alone.
        name: the project's name there; "" for ``[project]``.
        url: the address to write.
        present: the account that the usual settings have now, None if there is none.
    """

    file: Path
    name: str
    url: ProjectUrl
    present: Authenticator | None

    @property
    def section(self) -> str:
        """The section, as errors show it."""
        return section(self.name)

    def write(self, authenticator: Authenticator) -> None:
        """Write the file anew, completely or not at all, readable for this user alone.

        Raises:
            ConfigError: it cannot be written.
        """
        is_plain = not self.name or _NAME.fullmatch(self.name)
        text = (
            "# boinc_gahp login writes this file anew. Put other settings into boinc_gahp.toml.\n"
            f"{section(self.name if is_plain else json.dumps(self.name, ensure_ascii=False))}\n"
            f"url = {json.dumps(self.url, ensure_ascii=False)}\n"
            f"authenticator = {json.dumps(authenticator.reveal())}\n"
        )
        try:
            make_private_directory(self.file.parent)
            write_whole(self.file, text, 0o600)
        except OSError as error:
            raise ConfigError(
                f"the account could not be written: {error.filename or self.file}: "
                f"{error.strerror or error}"
            ) from error


def account_entry(
    usual: Settings, settings: Settings, url: ProjectUrl, name: str | None
) -> AccountEntry:
    """Return where the account of a project is to be written.

    Args:
        usual: the settings without the file of ``--config`` or ``BOINC_GAHP_CONFIG``, which may
            hide others.
        settings: all settings.
        url: the project's address.
        name: the project's name in the settings, "default" for the default project; None: the name
            that it has there, or the default project's if there is none yet, or one that is made of
            its address.

    Raises:
        ConfigError: the name is another project's, or this user has no home.
    """
    directory = user_directory()
    if directory is None:
        raise ConfigError("you have no home directory: set HOME")
    known = [*named_projects(usual), *named_projects(settings)]
    found = _name([(each, project.url) for each, project in known], url, name)
    stem = _NOT_IN_NAMES.sub("-", found) or _DEFAULT
    file = directory / PROJECTS_DIR / f"{stem}.toml"
    for other, files in usual.project_files.items():
        if other != found and file in files:
            raise ConfigError(f"{file} has {section(other)}: choose another name with --name NAME")
    present = dict(named_projects(usual)).get(found)
    return AccountEntry(file, found, url, None if present is None else present.authenticator)


def _name(known: list[tuple[str, ProjectUrl]], url: ProjectUrl, given: str | None) -> str:
    wanted = DEFAULT_PROJECT if given == _DEFAULT else given or DEFAULT_PROJECT
    if given is None:
        for name, other in known:
            if are_one_project(other, url):
                return name
        if DEFAULT_PROJECT not in dict(known):
            return DEFAULT_PROJECT
        path = url.split("/", 3)[3].strip("/").rpartition("/")[2]
        labels = [each for each in url.host.partition(":")[0].split(".") if each not in _COMMON]
        wanted = _NOT_IN_NAMES.sub("-", path or "".join(labels[:1]) or "project")
    elif not _NAME.fullmatch(given):
        raise ConfigError(f"a project cannot be named {given!r}: expected letters, digits, _ and -")
    taken = dict(reversed(known)).get(wanted, url)
    if not are_one_project(taken, url):
        raise ConfigError(
            f"{section(wanted)} of the settings is the project {taken}: choose another name for "
            f"{url} with --name NAME"
        )
    return wanted
