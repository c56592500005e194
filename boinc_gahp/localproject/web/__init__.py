"""The project's page: what people see of a project, and what they can do in a browser.

A Flask blueprint; it all works without JavaScript, and a small script keeps the display up to date
(``static/page.js``).
"""

from boinc_gahp.localproject.web.access import (
    STRANGERS_BODY,
    Refused,
    check_host,
    is_signed_in,
    sign_in_link,
)
from boinc_gahp.localproject.web.blueprint import make_blueprint
from boinc_gahp.localproject.web.layout import error_page, not_found

__all__ = [
    "STRANGERS_BODY",
    "Refused",
    "check_host",
    "error_page",
    "is_signed_in",
    "make_blueprint",
    "not_found",
    "sign_in_link",
]
