"""Finds the project that is meant, and makes the errors for a missing project or authenticator.

HTCondor's jobs, the daemon, ``check``, ``ledger move``, ``batch`` and the Python API all use this,
so they find the same project and give the same messages.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.config.settings import ProjectSettings
from boinc_gahp.config.urls import are_one_project
from boinc_gahp.errors import ConfigError
from boinc_gahp.secret import hide_logins
from boinc_gahp.text import did_you_mean, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.config.urls import ProjectUrl
    from boinc_gahp.secret import Authenticator

#: The name that stands for ``[project]``, beside those of ``[projects.NAME]``.
DEFAULT_PROJECT = ""
#: How many problems an error quotes.
_TOLD = 3
#: How many characters of the requested name an error quotes.
_SHOWN = 200


def section(name: str) -> str:
    """Return the section of a project's settings, as it is written in the file."""
    return f"[projects.{name}]" if name else "[project]"


def named_projects(settings: Settings) -> Iterator[tuple[str, ProjectSettings]]:
    """Yield all projects in the settings with their names, the default one first."""
    if settings.project is not None:
        yield DEFAULT_PROJECT, settings.project
    yield from settings.projects.items()


def find_project(
    settings: Settings,
    wanted: str | None,
    how: str = "name one of [projects.NAME]",
    *,
    of_settings: bool = True,
) -> tuple[str, ProjectSettings]:
    """Return a project from the settings, as its name there and its settings.

    Args:
        settings: all settings.
        wanted: its name, or any of its addresses; None or "" for the default project.
        how: "or <how>" tells what to do if the default project is wanted and there is none.
        of_settings: whether ``how`` only works for projects in the settings.

    Raises:
        ConfigError: there is no such project; lists the existing ones.
    """
    projects = dict(named_projects(settings))
    if not projects:
        raise no_project(settings, "" if of_settings else f", or {how}")
    name = wanted or DEFAULT_PROJECT
    if name in projects:
        return name, projects[name]
    known = ", ".join(f"{each or 'the default one'}: {it.url}" for each, it in projects.items())
    known = f"there {'is' if len(projects) == 1 else 'are'} {known}"
    if not wanted:
        raise ConfigError(
            "the settings have no default project: put url and authenticator_file into the section "
            f"[project], or {how} ({known})"
        )
    for name, project in projects.items():
        if are_one_project(project.url, wanted):
            return name, project
    raise ConfigError(
        f"the settings have no project {quoted(hide_logins(wanted), _SHOWN)} ({known}): name one "
        f"of these, or add it to the settings{did_you_mean(wanted, settings.projects)}"
    )


def find_projects(settings: Settings, wanted: Iterable[str] | None) -> dict[str, ProjectSettings]:
    """Return projects from the settings by their names there, each once; None: all of them.

    Raises:
        ConfigError: there is none, or not one of those.
    """
    names = wanted or [name for name, _ in named_projects(settings)] or [DEFAULT_PROJECT]
    return dict(find_project(settings, each) for each in names)


def project_at(
    settings: Settings, url: ProjectUrl, authenticator: Authenticator, name: str | None = None
) -> ProjectSettings:
    """Return a project with the settings of its address: certificates, proxy, sizes.

    Args:
        settings: all settings.
        url: its address.
        authenticator: the account's authenticator.
        name: the name of the section to try first.
    """
    projects = dict(named_projects(settings))
    first = projects.get(name or DEFAULT_PROJECT)
    for project in (first, *projects.values()):
        if project is not None and are_one_project(project.url, url):
            return replace(project, url=url, authenticator=authenticator)
    return ProjectSettings(url, authenticator)


def authenticator_of(settings: Settings, project: ProjectSettings) -> Authenticator:
    """Return a project's authenticator.

    Raises:
        ConfigError: it has none; says why, and what to do.
    """
    if project.authenticator is None:
        raise no_authenticator(settings, project)
    return project.authenticator


def no_authenticator(settings: Settings, project: ProjectSettings) -> ConfigError:
    """Return the error for a project without an authenticator."""
    name = next((name for name, each in named_projects(settings) if each is project), "")
    why = settings.no_authenticator.get(name)
    if why is not None:
        return ConfigError(why)
    return ConfigError(
        f"the settings name no authenticator for {project.url}: run boinc_gahp login "
        f'{project.url}, or put authenticator_file = "~/.config/boinc_gahp/authenticator" into '
        f"the section {section(name)} of ~/.config/boinc_gahp/boinc_gahp.toml, and your account's "
        "authenticator into that file, readable by you alone (chmod 600)"
    )


def no_account(settings: Settings) -> ConfigError:
    """Return the error for settings without an authenticator for any project."""
    for _, project in named_projects(settings):
        return no_authenticator(settings, project)
    return no_project(settings)


def no_project(settings: Settings, otherwise: str = "") -> ConfigError:
    """Return the error for settings without any project, with the possible reason."""
    more = "".join(f"; {problem}" for problem in settings.problems[:_TOLD])
    what = (
        "no settings file names a project: run boinc_gahp login URL; for a local project, name its "
        f"settings in this terminal: export BOINC_GAHP_CONFIG={_local_project()}"
    )
    if settings.project_files:
        what = "no project's URL is set"  # more says where
    return ConfigError(f"{what} (boinc_gahp check tells which files are read){otherwise}{more}")


def _local_project() -> str:
    """Return the settings file of the tutorial's local project if it is there, or its form."""
    named = "~/project/boinc_gahp.toml"
    there = os.path.exists(os.path.expanduser(named))  # noqa: PTH110, PTH111  (there may be no home)
    return named if there else "DIR/boinc_gahp.toml"
