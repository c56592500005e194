"""What is known of a project's apps, from its list of them and from the account's batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.errors import GahpError, ProjectDown, ProtocolError, TransportError

if TYPE_CHECKING:
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.site import ProjectSite
    from boinc_gahp.rpc.types import AppInfo, AppVersionInfo


@dataclass(frozen=True, slots=True)
class KnownApp:
    """An app.

    Attributes:
        name: its name, with which jobs are submitted.
        title: its name for people; "" if the project does not tell it.
        is_beta: whether only volunteers who test apps get its jobs.
        versions: its versions; None if the project does not tell them.
        batches: how many of the account's batches have it; None if the project did not tell them.
    """

    name: str
    title: str = ""
    is_beta: bool = False
    versions: tuple[AppVersionInfo, ...] | None = None
    batches: int | None = None


@dataclass(frozen=True, slots=True)
class KnownApps:
    """The apps of a project, as far as it tells them.

    Attributes:
        apps: those that are known, by name.
        unlisted: why the project does not list its apps; None if it does. Then those of the
            account's batches are known.
    """

    apps: tuple[KnownApp, ...]
    unlisted: GahpError | None


def known_apps(site: ProjectSite, project: WebRpcs) -> KnownApps:
    """Ask a project for its apps.

    Raises:
        RpcError: it told neither its apps nor the account's batches.
    """
    listed: tuple[AppInfo, ...] = ()
    unlisted: GahpError | None = None
    used: Counter[str] | None = None
    try:
        listed = site.apps()
    except GahpError as error:
        unlisted = error
        if isinstance(error, ProjectDown) or _is_silence(error):
            # Another question would only take the same time again.
            raise
    try:
        used = Counter(batch.app_name for batch in project.query_batches())
    except GahpError:
        # Whoever has no right to submit may still read the list.
        if unlisted is not None:
            raise
    apps = {each.name: _known(each, used) for each in listed}
    for name in used or ():
        apps.setdefault(name, KnownApp(name, batches=used[name] if used else None))
    return KnownApps(tuple(apps[name] for name in sorted(apps)), unlisted)


def why_unlisted(error: GahpError) -> str:
    """Return why a project does not list its apps, in words without a full stop."""
    if isinstance(error, ProtocolError):
        return "its page apps.php?xml=1 is not for programs"
    return f"its page apps.php?xml=1: {error}"


def _is_silence(error: GahpError) -> bool:
    return isinstance(error, TransportError) and error.status is None and not error.permanent


def _known(app: AppInfo, used: Counter[str] | None) -> KnownApp:
    batches = None if used is None else used[app.name]
    return KnownApp(app.name, app.user_friendly_name, app.beta, app.versions, batches)
