"""Somebody at the project's page, for tests: real requests, and what the answers hold."""

import time

import requests
from lxml import html

from boinc_gahp.localproject.backend.create_work import NewJob, create_work, stage_file
from boinc_gahp.localproject.web.page import page_address


def words(element):
    """Return an element's text as it is read, white space taken together."""
    return " ".join(" ".join(element.itertext()).split())


def found(element, path):
    """Return what an XPath expression finds."""
    nodes = element.xpath(path)
    assert isinstance(nodes, list)
    return nodes


def made_batch(core, name, jobs, *, app_name="uppercase", user_name="submitter", create_time=None):
    """Make a batch with jobs; return its id."""
    with core.db.write() as connection:
        cursor = connection.execute(
            "INSERT INTO batch (user_id, create_time, name, name_key, app_id, expire_time) "
            "SELECT u.id, ?, ?, ?, a.id, 0 FROM user u, app a WHERE u.name = ? AND a.name = ?",
            (time.time() if create_time is None else create_time, name, name, user_name, app_name),
        )
    create_work(core, app_name, jobs, batch_id=cursor.lastrowid)
    return cursor.lastrowid


class Visitor:
    """A browser without scripts that has opened the page."""

    def __init__(self, core):
        self.core = core
        self.session = requests.Session()

    def __enter__(self):
        answer = self.session.get(page_address(self.core), timeout=60)
        assert answer.status_code == 200, answer.text
        return self

    def __exit__(self, *_):
        self.session.close()

    def get(self, path="", **headers):
        """Fetch a page; ``path`` begins below the project's address."""
        return self.session.get(
            self.core.url + path, headers=headers, timeout=60, allow_redirects=False
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
