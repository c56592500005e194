"""docs/security.rst: for each sentence, ``security_claims`` has the tests that hold it.

The page ``promises.rst`` names those of the other promises in the same way.
A test of this name may hold less than the sentence says: who changes one looks at the other.
"""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

from docutils import nodes
from docutils.core import publish_doctree

from boinc_gahp.api import family
from boinc_gahp.config.settings import Settings
from boinc_gahp.fetch import _tar_archive
from boinc_gahp.htcondor import attributes
from boinc_gahp.rpc import _caller, _pages, _repair, _table
from boinc_gahp.rpc.options import ClientOptions

TESTS = Path(__file__).parent.parent
PAGE = TESTS.parent / "docs" / "security.rst"
PROMISES = PAGE.with_name("internals") / "promises.rst"
CLAIMS = Path(__file__).with_name("security_claims")

#: Sections that promise nothing.
NO_PROMISES = {"What is not guaranteed", "To report a vulnerability"}
#: What stands for the tests of a sentence that says nothing of the program.
NO_PROMISE = "no promise"


def read(text):
    # Sphinx's roles, which docutils does not know.
    text = re.sub(r":(?:doc|ref):`([^`<]*)(?:<[^>]*>)?`", r"\1", text)
    settings = {"warning_stream": "", "_disable_config": True}
    return publish_doctree(text, settings_overrides=settings)


def sentences(text):
    """Return what the page says: the sentences of its paragraphs, and the rows of its tables."""
    found = []
    for node in read(text).findall(lambda node: isinstance(node, nodes.paragraph | nodes.row)):
        above = [node]
        while above[-1].parent is not None:
            above.append(above[-1].parent)
        titles = {each[0].astext() for each in above if isinstance(each, nodes.section)}
        kinds = {type(each) for each in above[1:]}
        if titles & NO_PROMISES or kinds & {nodes.row, nodes.thead}:
            continue
        said = " ".join(node.astext().split())
        found += [said] if isinstance(node, nodes.row) else re.split(r"(?<=[.?]) ", said)
    return found


def claims():
    """Return how each sentence begins, and the names of its tests."""
    found = {}
    for line in CLAIMS.read_text("utf-8").splitlines():
        if line.startswith(" "):
            beginning = list(found)[-1]
            found[beginning].append(line.strip())
        elif line and not line.startswith("#"):
            assert line not in found, "it is there twice"
            found[line] = []
    return found


@cache
def functions_in(file):
    """Return the tests of a file, as pytest names them."""
    found = set()
    for node in ast.parse((TESTS / file).read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{getattr(each, 'name', '')}" for each in node.body}
    return found


def test_each_sentence_has_tests():
    said, known = sentences(PAGE.read_text("utf-8")), claims()
    found = {each: [start for start in known if each.startswith(start)] for each in said}
    assert {each: starts for each, starts in found.items() if len(starts) != 1} == {}
    used = Counter(start for starts in found.values() for start in starts)
    assert {start: used[start] for start in known if used[start] != 1} == {}
    assert [start for start, tests in known.items() if not tests] == []


def test_each_test_that_holds_a_sentence_or_a_promise_is_there():
    named = {each for tests in claims().values() for each in tests} - {NO_PROMISE}
    named |= set(re.findall(r"``([\w/]+\.py::\w+)``", PROMISES.read_text("utf-8")))
    assert len(named) > 100
    missing = []
    for each in sorted(named):
        file, _, name = each.partition("::")
        if not (TESTS / file).is_file() or name not in functions_in(file):
            missing.append(each)
    assert missing == []


def test_the_limits_of_the_table_are_the_programs():
    settings, options = Settings(), ClientOptions()
    jobs, limits = settings.jobs, settings.limits
    numbers = {
        "a reply": (_table.REPLY_BYTES >> 20, _table.ITEM_BYTES >> 10),
        "items": (_table.MOST_JOBS, _table.MOST_BATCHES),
        "a text": (_repair.MAX_TEXT_PART >> 10,),
        "a web page": (_pages.PAGE_BYTES >> 10,),
        "an output": (jobs.max_output_bytes // 10**9,),
        "an archive": (jobs.unzip_max_bytes // 10**9, jobs.unzip_max_files, _tar_archive._RECORDS),
        "lowest speed": (options.output_rate / 1000,),
        "the whole": (options.reply_timeout,),
        "silence": (settings.timeouts.read,),
        "threads": (limits.workers, limits.control_workers),
        "waiting": (limits.pending_requests,),
        "redirects": (_caller._REDIRECTS,),
        "retries": (family._MOST,),
        "an expression's": (attributes._MAX_VALUE, attributes._MAX_DEPTH),
    }
    said = sentences(PAGE.read_text("utf-8"))
    for row, found in numbers.items():
        (text,) = [each for each in said if re.match(rf"{row}\b.* (none$|\[)", each)]
        assert re.findall(r"[\d,]*\d", text) == [f"{number:,.0f}" for number in found]
