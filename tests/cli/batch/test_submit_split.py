"""``boinc_gahp batch submit --split``."""

import json

import pytest


@pytest.fixture
def words(site, tmp_path, monkeypatch):
    """A submit of 30 jobs with a template each, of which 10,000 bytes hold about ten."""
    monkeypatch.chdir(tmp_path)
    # Beside the other: the authenticator's file is named from there.
    config = site.config.with_name("small.toml")
    before = site.config.read_text()
    config.write_text(before.replace("[project]\n", "[project]\nmax_post_bytes = 10_000\n", 1))
    assert config.read_text() != before
    asked = ["--input", "in=inline:x", "--count", "30", "--delay", "4242"]
    return ["submit", "uppercase", *asked, "--config", str(config), "--name", tmp_path.name]


def test_what_does_not_fit_is_refused_or_split(batch, words, tmp_path):
    status, out, err = batch(*words)
    assert (status, out) == (1, "")
    assert "these bytes are input templates" in err
    assert "batch submit --split" in err
    status, out, err = batch(*words, "--split", "--dry-run")
    assert (status, err) == (0, "")
    plans = out.count("Without --dry-run this is sent.")
    status, out, err = batch(*words, "--split")
    assert (status, err) == (0, "")
    heads = [line for line in out.splitlines() if line.startswith("Batch ")]
    assert len(heads) == plans >= 3
    assert f"'{tmp_path.name}-2': 1" in heads[1]
    status, out, _ = batch(*words, "--split", "--json")
    again = [json.loads(f"{{{text}}}") for text in out.strip()[1:-1].split("}\n{")]
    assert [each["existed"] for each in again] == [True] * plans


def test_the_row_of_a_job_that_is_refused_is_named_in_a_later_batch(batch, words, tmp_path):
    lines = [f'{{"name": "{tmp_path.name}r{n}"}}' for n in range(30)]
    lines[24] = f'{{"name": "{tmp_path.name}r24", "args": ["two words"]}}'
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    place = words.index("--count")
    words[place : place + 2] = ["--rows", "rows.jsonl"]
    for more in (["--split", "--dry-run"], ["--split"]):
        status, _, err = batch(*words, *more)
        assert status == 1
        assert "rows.jsonl:25: " in err
