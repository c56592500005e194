"""Somebody at the page, for tests: real requests, and what the answers hold."""

import requests
from lxml import html

from boinc_gahp.localproject.backend.create_work import NewJob, stage_file
from tests.localproject.batches import made_batch


def words(element):
    """Return an element's text as it is read, white space taken together."""
    return " ".join(" ".join(element.itertext()).split())


def found(element, path):
    """Return what an XPath expression finds."""
    nodes = element.xpath(path)
    assert isinstance(nodes, list)
    return nodes


class Visitor:
    """A browser without scripts at the page."""

    def __init__(self, address, core=None):
        self.address = address
        self.core = core
        self.session = requests.Session()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def get(self, path="", **headers):
        """Fetch a page; ``path`` begins below the page's address."""
        return self.session.get(
            self.address + path, headers=headers, timeout=60, allow_redirects=False
        )

    def page(self, path=""):
        """Fetch a page that must be there, and parse it."""
        answer = self.get(path)
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return html.fromstring(answer.text)

    def text(self, path=""):
        """Return the words of a page."""
        return words(self.page(path))

    def batch(self, name, jobs=1, command_line=""):
        """Make a batch of the app uppercase and return its id."""
        file = stage_file(self.core, b"abc", "900150983cd24fb0d6963f7d28e17f72.txt")
        return made_batch(
            self.core,
            name,
            [
                NewJob(name=f"{name}_{number}", files=(file,), command_line=command_line or None)
                for number in range(jobs)
            ],
        )
