"""Somebody at the project's page, for tests: real requests, and what the answers hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import requests
from lxml import html

from boinc_gahp.localproject.web import sign_in_link

if TYPE_CHECKING:
    from collections.abc import Mapping

    from boinc_gahp.localproject.core import Core


def words(element: html.HtmlElement) -> str:
    """Return an element's text as it is read, white space taken together."""
    return " ".join(" ".join(element.itertext()).split())


def found(element: html.HtmlElement, path: str) -> list[Any]:
    """Return what an XPath expression finds."""
    nodes = element.xpath(path)
    assert isinstance(nodes, list)
    return nodes


class Visitor:
    """A browser without scripts."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.session = requests.Session()

    def __enter__(self) -> Visitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.session.close()

    def get(self, path: str = "", **headers: str) -> requests.Response:
        """Fetch a page; ``path`` begins below the project's address."""
        return self.session.get(
            self.core.url + path, headers=headers, timeout=60, allow_redirects=False
        )

    def page(self, path: str = "") -> html.HtmlElement:
        """Fetch a page that must be there, and parse it."""
        answer = self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return html.fromstring(answer.text)

    def text(self, path: str = "") -> str:
        """Return the words of a page."""
        return words(self.page(path))

    def token(self) -> str:
        """Return the token of this visitor's forms."""
        match = re.search(r'name="token" value="([^"]+)"', self.get("sign-in").text)
        assert match is not None
        return match[1]

    def send(
        self,
        path: str,
        fields: Mapping[str, str] | None = None,
        files: Mapping[str, tuple[str, bytes]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Send a form with its token, and do not follow where the answer leads."""
        return self.session.post(
            self.core.url + path,
            data={"token": self.token(), **(fields or {})},
            files=files,
            headers=headers,
            timeout=60,
            allow_redirects=False,
        )

    def said(self, answer: requests.Response) -> str:
        """Follow a redirect and return what the page says of what was done."""
        assert answer.status_code == 303, (answer.status_code, answer.text)
        at = self.session.get(urljoin(answer.url, answer.headers["Location"]), timeout=60)
        said = found(html.fromstring(at.text), "//p[contains(@class, 'said')]")
        return " ".join(words(each) for each in said)

    def batch(self, name: str, jobs: int = 1, **options: str) -> int:
        """Submit a batch of the app uppercase through the form and return its id."""
        fields = {"app": "uppercase", "batch_name": name, "jobs": str(jobs), **options}
        answer = self.send("submit", fields, {"file_0": ("in.txt", b"abc")})
        assert answer.status_code == 303, answer.text
        return int(answer.headers["Location"].rpartition("/")[2])

    def sign_in(self, name: str = "submitter") -> Visitor:
        """Sign in with a one-time link."""
        key = sign_in_link(self.core, name).partition("?key=")[2]
        answer = self.send("sign-in", {"key": key})
        assert answer.status_code == 303, answer.text
        return self
