"""What ``--json`` prints: one document, in UTF-8, with keys that stay."""

import contextlib
import io
import json
import re

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.cli.batch.jsons import print_json
from boinc_gahp.terminal.words import moment

TIME = re.compile(r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ")

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


# tests/documents/test_json_keys.py has the keys.


def test_a_batch_is_shown_with_jobs_each_on_a_line(site, batch):
    number, name = site.finished("", "--fail 4")
    document = batch.json("show", name)
    assert TIME.fullmatch(document["batch"]["ended"])
    done, failed = document["jobs"]
    assert (done["state"], done["errors"], done["exit_statuses"]) == ("done", [], [])
    assert (failed["state"], failed["canonical_instance"]) == ("failed", None)
    assert (failed["errors"], failed["exit_statuses"]) == (["too_many_error_results"], [4, 4, 4])
    assert done["canonical_instance"] == site.rpc.query_job(done["id"])[0].id
    assert batch.json("show", number, "--state", "failed")["jobs"] == [failed]
    lines = batch.prints("show", number, "--json").splitlines()
    assert lines[:2] == ["{", '  "batch": {']
    jobs = [json.loads(line.rstrip(",")) for line in lines if line.startswith('    {"id":')]
    assert jobs == [done, failed]


def test_wait_prints_an_object_a_line(batch, mixed):
    (line,) = batch.prints("wait", mixed[0], "--json", status=3).splitlines()
    news = json.loads(line)
    assert TIME.fullmatch(news["time"])
    assert [news[key] for key in ("waiting", "running", "done", "failed")] == [0, 0, 1, 1]


@pytest.mark.processes
def test_it_is_utf_8_whatever_the_locale_is(site, batch):
    site.batch("", name="größe")
    done = batch.piped(
        "list", "--json", "--limit", 1, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
    assert json.loads(done.stdout)["batches"][0]["name"] == "größe"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, None),
        (None, None),
        (1e300, None),
        (float("inf"), None),
        (1795300980.9, "2026-11-21T22:43:00Z"),
    ],
)
def test_times_are_rfc_3339_in_utc(seconds, text):
    assert moment(seconds) == text


@given(st.dictionaries(st.text(min_size=1), VALUES, max_size=3), st.lists(VALUES, max_size=3))
def test_whatever_is_printed_is_one_document_that_json_reads(members, items):
    members.pop("items", None)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        print_json(members, items=iter(items))
    read = json.loads(out.getvalue(), parse_constant=_refuse)
    out.getvalue().encode()
    assert len(read["items"]) == len(items)
    assert list(read)[-1] == "items"
    with contextlib.redirect_stdout(io.StringIO()) as listed:
        print_json(iter(items))
    assert json.loads(listed.getvalue(), parse_constant=_refuse) == read["items"]


def _refuse(word):
    raise AssertionError(f"{word} is no JSON")
