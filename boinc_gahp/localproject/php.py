"""The settings of PHP in which real servers differ, and that clients notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Php:
    """Settings of php.ini, with the values that ``docs/project-admins.rst`` recommends.

    Sizes are bytes. With ``display_errors`` replies contain PHP's messages, and a fatal error is
    HTTP 200 with its text; without, HTTP 500 with the beginning of a reply (``web-rpcs.rst``,
    "Transport and framing").
    """

    display_errors: bool = False
    max_file_uploads: int = 20
    upload_max_filesize: int = 1 << 30
    post_max_size: int = 1 << 30


#: As PHP and a project's template are shipped; the recordings (``wire/NAME``) are of this one.
STOCK = Php(display_errors=True, upload_max_filesize=2 << 20, post_max_size=8 << 20)
