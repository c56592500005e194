"""``boinc_gahp batch submit`` that fails: what is left, and the command that continues."""

import shlex

import pytest

from boinc_gahp.localproject.core import STOCK

ROWS = ("submit", "uppercase", "--rows", "rows.csv")


def told(line):
    """Return the words after ``boinc_gahp batch`` of the command at the end of a message."""
    return shlex.split(line.partition(": boinc_gahp batch ")[2])


def rows(here, *names):
    (here / "rows.csv").write_text("name,input:in\n" + "".join(f"{n},in.txt\n" for n in names))


def batches(site):
    return {each.name: each.state.name for each in site.rpc.query_batches()}


@pytest.fixture
def taken(batch, here, tag):
    """The name of a job that another batch has; the project has the input file."""
    rows(here, f"{tag}-a")
    assert batch(*ROWS, "--name", f"{tag}-1")[0] == 0
    return f"{tag}-a"


@pytest.mark.parametrize("named", [False, True])
def test_a_file_that_the_project_does_not_take_leaves_no_batch_and_its_name_free(
    site, batch, here, tag, monkeypatch, *, named
):
    monkeypatch.setattr(site.project.core, "php", STOCK)
    (here / "in.txt").write_bytes(b"x" * ((2 << 20) + 1))
    words = ("submit", "uppercase", "--input", "in=in.txt", *(("--name", tag) if named else ()))
    before = batches(site)
    *_, refusal, again = batch.refuses(*words).splitlines()
    assert "raise upload_max_filesize" in refusal
    assert "let volunteers fetch it from a web server of yours" in refusal
    assert batches(site) == before
    assert again.startswith("boinc_gahp: to continue, once that is fixed: ")
    assert told(again) == list(words)
    (here / "in.txt").write_text("small")
    batch.prints(*told(again))


@pytest.mark.parametrize("named", [False, True])
def test_a_batch_whose_jobs_are_refused_for_good_is_retired(site, batch, here, taken, named):
    rows(here, f"{taken}b", taken, f"{taken}c")
    words = (*ROWS, *((f"--name={taken}-2",) if named else ()))
    before = batches(site)
    *_, refusal, again = batch.refuses(*words).splitlines()
    assert refusal.startswith(f"boinc_gahp: rows.csv:3: job name '{taken}' is in use")
    assert batches(site) == before
    repeated = told(again)
    assert repeated == list(words)
    rows(here, f"{taken}b", f"{taken}c")
    if named:
        assert "with another --name: " in again
        repeated[-1] = f"--name={taken}-4"
    assert batch(*repeated)[0] == 0


def test_a_batch_that_an_earlier_submit_made_stays_for_a_corrected_table(site, batch, here, taken):
    site.rpc.create_batch(f"{taken}-2", "uppercase", expire_time=0)
    again = told(batch.refuses(*ROWS, "--name", f"{taken}-2").splitlines()[-1])
    assert again == [*ROWS, "--name", f"{taken}-2"]
    rows(here, f"{taken}b")
    assert batch(*again)[0] == 0


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a'b"])
def test_a_name_that_no_batch_can_have_leaves_nothing_to_be_aborted(batch, here, name):
    err = batch.refuses("submit", "uppercase", "--input", "in=in.txt", "--name", name)
    assert err.count("\n") == 2
    assert "\x1b" not in err
