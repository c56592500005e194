"""What a project's list of its apps tells, for ``apps`` and ``check``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.errors import GahpError, ProtocolError, TransportError
from boinc_gahp.rpc.site import apps

if TYPE_CHECKING:
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.types import AppInfo


def listed_apps(project: WebRpcs) -> tuple[dict[str, AppInfo], str]:
    """Return a project's apps by name, and why it does not list them; "" if it does.

    Raises:
        RpcError: it is down, or does not answer at all.
    """
    try:
        return {app.name: app for app in apps(project)}, ""
    except ProtocolError:
        return {}, "its page apps.php?xml=1 is not for programs"
    except GahpError as error:
        silent = isinstance(error, TransportError) and error.status is None and error.passes
        if silent or error.concerns == "project":
            raise
        return {}, f"its page apps.php?xml=1: {error}"


def version_number(version: int) -> str:
    """Return a version as BOINC's pages show it: 102 is 1.02."""
    return f"{version / 100:.2f}"


def version_words(app: AppInfo) -> str:
    """Return an app's versions: ``1.02 x86_64-pc-linux-gnu (docker), …``."""
    return ", ".join(
        f"{version_number(each.version_num)} {each.platform_short}"
        + (f" ({each.plan_class})" if each.plan_class else "")
        for each in app.versions
    )
