"""The project's page: what people see of a project in a browser.

A Flask blueprint; it all works without JavaScript, and a small script keeps the display up to date
(``static/page.js``).

Its names are imported at first use: commands show the page's words and numbers without Flask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports

if TYPE_CHECKING:
    from boinc_gahp.localproject.web.access import (
        Refused as Refused,
        check_host as check_host,
        page_address as page_address,
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
        "access": ["Refused", "check_host", "page_address"],
        "blueprint": ["make_blueprint", "missing"],
        "layout": ["error_page", "not_found"],
    },
)
