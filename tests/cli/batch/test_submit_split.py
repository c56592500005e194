"""``boinc_gahp batch submit --split``."""

import json

import pytest


@pytest.fixture
def words(small, here, tag):
    """A submit of jobs with a template each, of which a request holds about ten."""
    asked = ("--input", "in=inline:x", "--delay", "4242", "--name", tag)
    return ("submit", "uppercase", *asked, "--config", small)


def test_what_does_not_fit_is_refused_or_split(batch, words, tag):
    words += ("--count", "30")
    err = batch.refuses(*words)
    assert "these bytes are input templates" in err
    assert "batch submit --split" in err
    plans = batch.prints(*words, "--split", "--dry-run").count("Without --dry-run this is sent.")
    out = batch.prints(*words, "--split")
    heads = [line for line in out.splitlines() if line.startswith("Batch ")]
    assert len(heads) == plans >= 3
    assert f"'{tag}-2': 1" in heads[1]
    out = batch.prints(*words, "--split", "--json")
    again = [json.loads(f"{{{text}}}") for text in out.strip()[1:-1].split("}\n{")]
    assert [each["existed"] for each in again] == [True] * plans


def test_the_row_of_a_job_that_is_refused_is_named_in_a_later_batch(batch, words, here, tag):
    lines = [f'{{"name": "{tag}r{n}"}}' for n in range(30)]
    lines[24] = f'{{"name": "{tag}r24", "args": ["two words"]}}'
    (here / "rows.jsonl").write_text("\n".join(lines))
    for more in ([], ["--dry-run"]):
        status, _, err = batch(*words, "--rows", "rows.jsonl", "--split", *more)
        assert (status, "rows.jsonl:25: " in err) == (1, True)
