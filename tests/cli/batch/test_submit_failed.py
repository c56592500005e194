"""``boinc_gahp batch submit`` that fails: what is left, and the command that continues."""

import shlex

import pytest

from boinc_gahp.localproject.php import STOCK


@pytest.fixture
def tag(site, tmp_path, monkeypatch):
    """A text for names; the working directory has an input file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.txt").write_text(str(tmp_path))
    return f"t{abs(hash(tmp_path))}"


def told(line):
    """Return the words after ``boinc_gahp batch`` of the command at the end of a message."""
    return shlex.split(line.partition(": boinc_gahp batch ")[2])


def rows(path, *names):
    (path / "rows.csv").write_text("name,input:in\n" + "".join(f"{n},in.txt\n" for n in names))


def batches(site):
    return {each.name: each.state.name for each in site.rpc.query_batches()}


@pytest.mark.parametrize("named", [False, True])
def test_a_file_that_the_project_does_not_take_leaves_no_batch_and_its_name_free(
    site, batch, tag, tmp_path, monkeypatch, *, named
):
    monkeypatch.setattr(site.project.core, "php", STOCK)
    (tmp_path / "large.txt").write_bytes(b"x" * ((2 << 20) + 1))
    words = ("submit", "uppercase", "--input", "in=large.txt", *(("--name", tag) if named else ()))
    before = batches(site)
    exit_status, out, err = batch(*words)
    *_, refusal, again = err.splitlines()
    assert (exit_status, out) == (1, "")
    assert "raise upload_max_filesize" in refusal
    assert "name a URL from which volunteers fetch it" in refusal
    assert batches(site) == before
    assert again.startswith("boinc_gahp: to continue, once that is fixed: ")
    assert told(again) == list(words)
    (tmp_path / "large.txt").write_text("small")
    assert batch(*told(again))[0] == 0


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_name_in_use_is_noticed_before_a_batch_is_made(site, batch, tag, tmp_path, place):
    rows(tmp_path, f"{tag}-a", f"{tag}-b")
    words = ("submit", "uppercase", "--rows", "rows.csv", "--name")
    assert batch(*words, f"{tag}-1")[0] == 0
    names = (f"{tag}-b", f"{tag}-c") if place == "first" else (f"{tag}-c", f"{tag}-A")
    rows(tmp_path, *names)
    line, taken = (2, names[0]) if place == "first" else (3, names[1])
    before = batches(site)
    for dry in ((), ("--dry-run",)):
        exit_status, _, err = batch(*words, f"{tag}-2", *dry)
        said = f"boinc_gahp: rows.csv:{line}: job name {taken!r} is in use on "
        assert (exit_status, said in err) == (1, True)
        assert "[BG-NAME-IN-USE]" in err
    _, _, err = batch(*words, f"{tag}-2")
    again = err.splitlines()[-1]
    assert batches(site) == before
    rows(tmp_path, f"{tag}-c")
    assert batch(*told(again))[0] == 0


@pytest.mark.parametrize("named", [False, True])
def test_a_batch_whose_jobs_are_refused_for_good_is_retired(site, batch, tag, tmp_path, named):
    rows(tmp_path, f"{tag}-a")
    words = ("submit", "uppercase", "--rows", "rows.csv")
    assert batch(*words, "--name", f"{tag}-1")[0] == 0
    assert batch("submit", "uppercase", "--input", "in=in.txt", "--name", f"{tag}-3")[0] == 0
    rows(tmp_path, f"{tag}-b", f"{tag}-a", f"{tag}-c")
    before = batches(site)
    exit_status, _, err = batch(*words, *((f"--name={tag}-2",) if named else ()))
    *_, refusal, again = err.splitlines()
    assert exit_status == 1
    assert refusal.startswith(f"boinc_gahp: rows.csv:3: job name '{tag}-a' is in use")
    assert batches(site) == before
    assert told(again) == [*words, *((f"--name={tag}-2",) if named else ())]
    rows(tmp_path, f"{tag}-b", f"{tag}-c")
    repeated = told(again)
    if named:
        assert "with another --name: " in again
        repeated[-1] = f"--name={tag}-4"
    assert batch(*repeated)[0] == 0


@pytest.mark.long
def test_jobs_that_were_made_before_one_is_refused_are_aborted(site, batch, tag, tmp_path):
    rows(tmp_path, f"{tag}-a")
    words = ("submit", "uppercase", "--rows", "rows.csv", "--name")
    assert batch(*words, f"{tag}-1")[0] == 0
    # A project makes jobs in portions of about 1,300.
    names = [f"{tag}-n{n}" for n in range(3000)]
    rows(tmp_path, *names[:2500], f"{tag}-a", *names[2500:])
    exit_status, _, err = batch(*words, f"{tag}-2")
    # A busy project may not answer at once, which is told, too.
    *_, refusal, again = err.splitlines()
    assert (exit_status, "rows.csv:2502: job name" in refusal) == (1, True)
    assert f"{tag}-2" not in batches(site)
    assert "with another --name: " in again


def test_a_batch_that_an_earlier_submit_made_stays_for_a_corrected_table(
    site, batch, tag, tmp_path
):
    rows(tmp_path, f"{tag}-a")
    words = ("submit", "uppercase", "--rows", "rows.csv", "--name")
    assert batch(*words, f"{tag}-1")[0] == 0
    site.rpc.create_batch(f"{tag}-2", "uppercase", expire_time=0)
    _, _, err = batch(*words, f"{tag}-2")
    again = err.splitlines()[-1]
    assert told(again) == [*words, f"{tag}-2"]
    rows(tmp_path, f"{tag}-b")
    assert batch(*told(again))[0] == 0


def test_an_output_template_that_is_not_there_leaves_nothing(site, batch, tag):
    words = ("submit", "uppercase", "--input", "in=in.txt")
    wrong = ("--output-template", "project:nosuch")
    before = batches(site)
    exit_status, _, err = batch(*words, "--name", tag, *wrong)
    *_, refusal, again = err.splitlines()
    assert (exit_status, "[BG-JOBS-NOT-LISTED]" in refusal) == (1, True)
    assert batches(site) == before
    assert "with another --name: " in again
    assert told(again) == [*words, "--name", tag, *wrong]
    assert batch(*words, "--name", f"{tag}-2")[0] == 0


@pytest.mark.usefixtures("site", "tag")
@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a'b"])
def test_a_name_that_no_batch_can_have_leaves_nothing_to_be_aborted(batch, name):
    status, _, err = batch("submit", "uppercase", "--input", "in=in.txt", "--name", name)
    assert (status, err.count("\n")) == (1, 2)
    assert "\x1b" not in err
