"""The project's page: what people see of a project, and what they can do in a browser.

A Flask blueprint; it all works without JavaScript, and a small script keeps the display up to date
(``static/page.js``).

Its names are imported at first use: commands show the page's words and numbers without Flask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.localproject.web.access import (
        STRANGERS_BODY as STRANGERS_BODY,
        Refused as Refused,
        check_host as check_host,
        is_signed_in as is_signed_in,
        sign_in_link as sign_in_link,
    )
    from boinc_gahp.localproject.web.blueprint import (
        make_blueprint as make_blueprint,
        missing as missing,
    )
    from boinc_gahp.localproject.web.layout import (
        error_page as error_page,
        not_found as not_found,
    )

__getattr__, __dir__ = exports(
    __name__,
    {
        "access": ["STRANGERS_BODY", "Refused", "check_host", "is_signed_in", "sign_in_link"],
        "blueprint": ["make_blueprint", "missing"],
        "layout": ["error_page", "not_found"],
    },
)
