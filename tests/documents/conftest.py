from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.documents.volunteers import container_project, settings  # noqa: F401  (fixtures)

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "scripts" / "examples"


@dataclass(frozen=True)
class Built:
    """What ``scripts/docs`` made, and what it said."""

    directory: Path
    run: subprocess.CompletedProcess[str]

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


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The documentation, built once."""
    directory = tmp_path_factory.mktemp("build")
    run = subprocess.run(
        [ROOT / "scripts" / "docs"],
        env={**os.environ, "BUILD": str(directory)},
        check=False,
        capture_output=True,
        text=True,
        timeout=600,
    )
    return Built(directory, run)


def shown(path, width):
    """Return what ``man`` shows of a page on a terminal of this width."""
    run = subprocess.run(
        ["man", "--warnings", "-l", path],
        env={**os.environ, "MANWIDTH": str(width), "MANPAGER": "cat", "LC_ALL": "C.UTF-8"},
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def sections(text):
    """Return what a manual page has under each heading of the second level."""
    parts = re.split(r"^   (\S.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def run_example(script, *arguments, cwd, config=None, timeout=500):
    """Run an example of ``scripts/examples``, which says nothing on stderr; return its stdout."""
    named = {} if config is None else {"BOINC_GAHP_CONFIG": str(config)}
    run = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        cwd=cwd,
        env={**os.environ, **named, "MPLBACKEND": "Agg"},
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout
