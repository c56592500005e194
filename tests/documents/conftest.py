import re
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.documents.volunteers import settings  # noqa: F401  (a fixture)
from tests.helpers import ran

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "scripts" / "examples"


class Built:
    """What ``scripts/docs`` made, and what it said."""

    def __init__(self, directory, run):
        self.directory = directory
        self.run = run

    @property
    def pages(self):
        return sorted((self.directory / "html").rglob("*.html"))

    def page(self, name):
        """Return the text of a page, without what is around it."""
        path = self.directory / "html" / f"{name}.html"
        article = BeautifulSoup(path.read_text("utf-8"), "html.parser").find("article")
        assert article is not None
        for block in article.find_all(("dt", "dd", "li", "p", "pre", "td", "th")):
            block.append("\n")
        return article

    def manual(self, name):
        return self.directory / "man" / name


def pytest_collection_modifyitems(items):
    """Mark the tests of what is built: a program builds it."""
    for item in items:
        if "built" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.processes)


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The documentation, built once."""
    directory = tmp_path_factory.mktemp("build")
    run = ran(ROOT / "scripts" / "docs", environ={"BUILD": directory}, timeout=600)
    return Built(directory, run)


def shown(path, width):
    """Return what ``man`` shows of a page on a terminal of this width."""
    environ = {"MANWIDTH": str(width), "MANPAGER": "cat", "LC_ALL": "C.UTF-8"}
    run = ran("man", "--warnings", "-l", path, environ=environ)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def flat(text):
    """Return the text on one line."""
    return " ".join(text.split())


def sections(text):
    """Return what a manual page has under each heading of the second level."""
    parts = re.split(r"^   (\S.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def run_example(script, *arguments, cwd, config=None, timeout=500):
    """Run an example of ``scripts/examples``, which says nothing on stderr; return its stdout."""
    named = {} if config is None else {"BOINC_GAHP_CONFIG": str(config)}
    words = (sys.executable, "-W", "error", EXAMPLES / script, *arguments)
    run = ran(*words, cwd=cwd, environ={**named, "MPLBACKEND": "Agg"}, timeout=timeout)
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout
