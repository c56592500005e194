"""Owners of jobs that this daemon can work for: projects and accounts with authenticators.

The ledger knows an owner by a project and an account. The authenticator, which is needed to work
for an owner, is only in the settings, and may be gone or changed by now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.config.accounts import named_projects, no_authenticator, section
from boinc_gahp.config.urls import are_one_project, url_identity

if TYPE_CHECKING:
    from boinc_gahp.config.settings import ProjectSettings, Settings

    #: A project's identity (:func:`boinc_gahp.config.urls.url_identity`), and an account.
    Owner = tuple[str, str]


def owner_key(url: str, account: str) -> Owner:
    """Return the owner for a project's URL and an account, as the ledger has them."""
    return url_identity(url), account


def known_owners(settings: Settings) -> dict[Owner, ProjectSettings]:
    """Return all owners that the settings have authenticators for, with their projects."""
    found: dict[Owner, ProjectSettings] = {}
    for _, project in named_projects(settings):
        if project.authenticator is not None:
            found.setdefault(owner_key(project.url, project.authenticator.account), project)
    return found


def explain_unknown(url: str, account: str, project_name: str, settings: Settings) -> str:
    """Return the text about jobs whose owner is no longer in the settings."""
    for _, project in named_projects(settings):
        if project.authenticator is None and are_one_project(project.url, url):
            return (
                f"boinc_gahp cannot work on the jobs on {url} for the account with "
                f"fingerprint {account}: "
                f"{no_authenticator(settings, project)}"
            )
    return (
        f"the settings have no project {url} with the account (fingerprint {account}) that "
        f"jobs were accepted for; it was in {section(project_name)}: put its url and authenticator "
        "back, or, if the project now has another address, or the account another authenticator, "
        "use boinc_gahp ledger move"
    )
