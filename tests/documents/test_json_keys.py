"""The keys that docs/reference/json.rst lists are those that are printed, no more, no less."""

import json
from pathlib import Path

import pytest

from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.ledger.rows import NewJob
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp_docs import jsons
from tests.cli.conftest import COMMAND
from tests.helpers import ran

pytestmark = pytest.mark.processes

DOCUMENTED = jsons.documented(Path(__file__).parents[2] / "docs/reference/json.rst")

#: Seconds that an action may take.
_LONGEST = 120.0


def keys(document, above=""):
    """Return a document's keys, as the page writes them."""
    found = set()
    if isinstance(document, dict):
        for key, value in document.items():
            path = f"{above}.{key}" if above else key
            found |= {path} | keys(value, path)
    elif isinstance(document, list):
        for each in document:
            if isinstance(each, dict):
                found |= keys(each, f"{above}[]")
    return found


class Desk:
    """A directory with a project's settings, where a program works."""

    def __init__(self, directory, config):
        self.directory = directory
        self._environ = {"BOINC_GAHP_CONFIG": str(config), "HOME": str(directory)}

    def prints(self, *arguments, status=0, command="batch"):
        """Run an action; return what it printed."""
        words = (COMMAND, command, *arguments)
        ended = ran(*words, cwd=self.directory, environ=self._environ, timeout=_LONGEST)
        assert ended.returncode == status, ended.stderr
        return ended.stdout

    def json(self, *arguments, status=0, command="batch"):
        """Run an action with ``--json``; return the document."""
        return json.loads(self.prints(*arguments, "--json", status=status, command=command))


def _rows(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """What each action prints, with no list empty."""
    directory = tmp_path_factory.mktemp("json")
    with LocalProject(directory / "project", hosts=2) as project:
        desk = Desk(directory, directory / "project" / "boinc_gahp.toml")
        (directory / "one.txt").write_text("one\n")
        good = {"inputs": {"in": "one.txt"}}
        _rows(directory / "rows.jsonl", good, {**good, "args": ["--fail", "3"]})
        _rows(directory / "bad.jsonl", good, {**good, "name": "a b"})
        submit = ("submit", "uppercase", "--rows")
        said = {
            "batch estimate": desk.json("estimate", "uppercase", "--rows", "rows.jsonl"),
            "batch submit --dry-run": desk.json(*submit, "bad.jsonl", "--dry-run", status=1),
            "batch submit": desk.json(*submit, "rows.jsonl", "--name", "two"),
        }
        project.add_container_app("docker")
        run = ("run", "--image", "x", "--app", "docker", "--dry-run", "--json")
        program = json.loads(desk.prints(*run, "--", "wc", "one.txt"))
        said["batch submit --dry-run"]["sent_along"] = program["sent_along"]
        desk.prints("wait", "two", status=3)
        said["batch logs"] = desk.json("logs", "two", "--failed")
        said["batch retry --dry-run"] = desk.json("retry", "two", "--dry-run")
        said["batch retry"] = desk.json("retry", "two")
        desk.prints("wait", "two-retry1", status=4)
        said["batch wait"] = json.loads(
            desk.prints("wait", "two", "--json", status=3).splitlines()[-1]
        )
        said["batch list"] = desk.json("list")
        said["batch show"] = desk.json("show", "two", "--details")
        # An output that the project has lost.
        for path in (directory / "project" / "upload").rglob("*"):
            if path.is_file():
                path.unlink()
        said["batch fetch"] = desk.json("fetch", "two", "here", status=1)
        said["batch fetch --zip"] = desk.json("fetch", "two", "--zip", "all.zip", status=1)
        said["batch extend"] = desk.json("extend", "two", "--for", "2d")
        said["batch abort"] = desk.json("abort", "two", "--yes")
        said["batch retire"] = desk.json("retire", "two", "--unfetched")
        # A job whose project the settings do not have.
        ledger = Ledger(Path(desk.json("status", command="ledger")["ledger"]))
        JobLedger(ledger.store).accept(
            NewJob("spool", "https://elsewhere.example/", "a", "", "app", "t", 1, "{}")
        )
        ledger.close()
        said["ledger status"] = desk.json("status", status=1, command="ledger")
        said["apps"] = desk.json("uppercase", command="apps")
        yield said


def test_every_action_has_its_keys_on_the_page(said):
    assert DOCUMENTED.keys() == said.keys()


@pytest.mark.parametrize("action", sorted(DOCUMENTED))
def test_what_an_action_prints_has_the_keys_that_the_page_lists(said, action):
    assert keys(said[action]) == DOCUMENTED[action]
