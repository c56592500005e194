"""A project's address, as requests need it."""

from __future__ import annotations

from boinc_gahp.config import urls
from boinc_gahp.errors import BadRequest
from boinc_gahp.secret import hide_logins


def address(url: str) -> tuple[str, str]:
    """Return a project's URL in its usual form (it ends in ``/``), and its host.

    The host comes with the port where that is not the scheme's own.

    Raises:
        BadRequest: it is no address of a project.
    """
    try:
        found = urls.parse(url)
    except ValueError:
        raise BadRequest(
            f"{hide_logins(url)!r} is no project's URL: expected http(s)://HOST/PROJECT/, as "
            "volunteers use it"
        ) from None
    return str(found), found.host
