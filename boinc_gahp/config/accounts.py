"""What there is to say where a project or its authenticator is missing: once, for all who need it.

The hold reasons of HTCondor's jobs, the daemon, ``check``, ``batch`` and the Python API use these
words, so that whoever looks anywhere reads the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from boinc_gahp.config.settings import ProjectSettings, Settings

#: The name of ``[project]`` beside those of ``[projects.NAME]``.
DEFAULT_PROJECT = ""
#: Problems that are told with what is missing.
_TOLD = 3


def section(name: str) -> str:
    """Return the section of a project's settings as it is written."""
    return f"[projects.{name}]" if name else "[project]"


def named_projects(settings: Settings) -> Iterator[tuple[str, ProjectSettings]]:
    """Yield all projects of the settings with their names, the default one first."""
    if settings.project is not None:
        yield DEFAULT_PROJECT, settings.project
    yield from settings.projects.items()


def no_authenticator(settings: Settings, name: str, project: ProjectSettings) -> ConfigError:
    """Return the error for a project, ``name`` in the settings, without an authenticator."""
    why = settings.no_authenticator.get(name)
    if why is not None:
        return ConfigError(why)
    return ConfigError(
        f"the settings name no authenticator for {project.url}: put authenticator_file = "
        f'"~/.config/boinc_gahp/authenticator" into the section {section(name)} of '
        "~/.config/boinc_gahp/boinc_gahp.toml, and your account's authenticator into that file, "
        "readable by you alone (chmod 600)"
    )


def no_account(settings: Settings) -> ConfigError:
    """Return the error for settings of which no project has an authenticator."""
    for name, project in named_projects(settings):
        return no_authenticator(settings, name, project)
    return no_project(settings)


def no_project(settings: Settings) -> ConfigError:
    """Return the error for settings that have no project at all, with what may be the reason."""
    more = "".join(f"; {problem}" for problem in settings.problems[:_TOLD])
    return ConfigError(
        "no settings file names a project: put its url and authenticator_file into the section "
        "[project] of ~/.config/boinc_gahp/boinc_gahp.toml (boinc_gahp check tells which files "
        f"are read){more}"
    )
