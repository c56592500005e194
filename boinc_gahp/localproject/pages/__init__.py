"""The project's page: what people see of a project, and what they can do with a browser.

A Flask blueprint; all of it works without JavaScript, and a small script keeps what is shown up to
date (``static/page.js``).
"""

from .access import sign_in_link
from .blueprint import make_blueprint
from .plain import error_page, not_found

__all__ = ["error_page", "make_blueprint", "not_found", "sign_in_link"]
