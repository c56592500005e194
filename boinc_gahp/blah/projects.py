"""Which of the projects in the settings a job means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.config.accounts import (
    DEFAULT_PROJECT,
    named_projects,
    no_authenticator,
    no_project,
)
from boinc_gahp.config.urls import are_one_project
from boinc_gahp.errors import ConfigError
from boinc_gahp.secret import hide_logins
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from boinc_gahp.config import ProjectSettings, Settings


def find_project(settings: Settings, wanted: str | None) -> tuple[ProjectSettings, str]:
    """Return the project that a job wants, and its name in the settings.

    Args:
        settings: all settings.
        wanted: a name in the settings, or a project's URL; None or "" for the default project,
            whose name is "".

    Raises:
        ConfigError: there is no such project, or no authenticator for it; says what there is.
    """
    found = _default(settings) if not wanted else _named(settings, wanted)
    project, name = found
    if project.authenticator is None:
        raise no_authenticator(settings, name, project)
    return found


def _default(settings: Settings) -> tuple[ProjectSettings, str]:
    if settings.project is None:
        if not settings.projects:
            raise no_project(settings)
        raise ConfigError(
            "the job names no project, and the settings have no default one ([project]); say which "
            f'with +remote_BoincProject = "name" in the submit file ({_known(settings)})'
        )
    return settings.project, DEFAULT_PROJECT


def _named(settings: Settings, wanted: str) -> tuple[ProjectSettings, str]:
    if wanted in settings.projects:
        return settings.projects[wanted], wanted
    for name, project in named_projects(settings):
        if are_one_project(project.url, wanted):
            return project, name
    if settings.project is None and not settings.projects:
        raise no_project(settings)
    raise ConfigError(
        f'the job wants project "{shorten(hide_logins(wanted), 200)}", which is not in the '
        f"settings; name it as they do ({_known(settings)}), or add it to them"
    )


def _known(settings: Settings) -> str:
    named = [
        f"{name or 'the default one'}: {project.url}" for name, project in named_projects(settings)
    ]
    return f"there {'is' if len(named) == 1 else 'are'} {', '.join(named)}"
