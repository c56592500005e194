"""Whose jobs this daemon can work on: the projects and accounts that the settings have secrets of.

The ledger knows an owner by a project's URL and an account; what it takes to work for one, the
authenticator, is in the settings alone, and may be gone or another by now.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.config import urls
from boinc_gahp.errors import ConfigError
from boinc_gahp.secret import hide_logins

if TYPE_CHECKING:
    from boinc_gahp.config import ProjectSettings, Settings

    #: A project's URL and an account on it, as the ledger has them.
    Owner = tuple[str, str]


def owner_of(project: ProjectSettings) -> tuple[Owner, ProjectSettings]:
    """Return the owner of the jobs that go to ``project``, and it with its URL in its one form.

    Raises:
        ConfigError: there is no authenticator, or the URL is none.
    """
    try:
        url = urls.project_url(project.url)
    except ValueError as error:
        raise ConfigError(f"the project's url is {hide_logins(project.url)!r}: {error}") from None
    if project.authenticator is None:
        raise ConfigError(
            f"the settings name no authenticator for {url}: set authenticator_file in the "
            "project's section (boinc_gahp check tells where the settings are)"
        )
    return (url, project.authenticator.account), replace(project, url=url)


def known_owners(settings: Settings) -> dict[Owner, ProjectSettings]:
    """Return all owners that the settings have authenticators of, with their projects."""
    found: dict[Owner, ProjectSettings] = {}
    for project in (settings.project, *settings.projects.values()):
        if project is not None:
            try:
                owner, whole = owner_of(project)
            except ConfigError:
                continue
            found.setdefault(owner, whole)
    return found


def explain_unknown(owner: Owner, project_name: str) -> str:
    """Return what to tell of jobs whose owner the settings do not know any more."""
    section = f"[projects.{project_name}]" if project_name else "[project]"
    return (
        f"the settings have no project {owner[0]} with the account (key {owner[1]}) that these "
        f"jobs were accepted for, once in {section}: they wait until its url and authenticator "
        "are there again, or until they are removed"
    )
