"""Results can be traced: which job had which parameters, and what came of it."""

import csv
import shutil
import zipfile

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.manifest import describe
from boinc_gahp.api.outputs import records
from boinc_gahp.api.outputs.records import FIRST, LAST, RowMaker
from boinc_gahp.errors import NoSuchJob, NotKnownHere, OutputError
from boinc_gahp.fetch.job_end import JobEnd
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.states import JobState
from boinc_gahp.submit.types import InlineFile, Job, LocalFile, SubmitRequest
from tests.helpers import at_once

pytestmark = pytest.mark.long


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def finished(site, count=3, name=None):
    """Return a batch whose jobs have parameters and a file, and are done."""
    path = site.directory / "a.txt"
    path.write_text("one")
    jobs = [
        Job(("-n", str(n)), {"in": LocalFile(path)}, parameters={"seed": n, "state": f"s{n}"})
        for n in range(count)
    ]
    return site.submit(jobs, name=name).wait(timeout=60)


def test_a_row_has_what_was_submitted_and_what_came_of_it(working):
    batch = finished(working)
    before = batch.to_records()
    assert [(row["seed"], row["exit_status"], row["folder"]) for row in before] == [
        (n, None, None) for n in range(3)
    ]
    results = working.directory / "results"
    batch.fetch(results)
    rows = batch.to_records()
    # Exit statuses and times come with the stderr, and nothing is asked twice.
    assert working.proxy.count("query_completed_job") == 3
    name = f"{batch.name}_1"
    row = rows[1]
    expected = {
        "job": name,
        "seed": 1,
        "parameter:state": "s1",
        "args": "-n 1",
        "input:in": str(working.directory / "a.txt"),
        "md5:in": "f97c5d29941bfb1b2fdab0874906ab82",
        "state": "done",
        "exit_status": 0,
        "cpu_time": pytest.approx(row["cpu_time"]),
        "elapsed_time": pytest.approx(row["elapsed_time"]),
        "why": None,
        "attempts": 1,
        "folder": str(results / name),
    }
    assert [*row.items()] == [*expected.items()]
    assert row["elapsed_time"] > 0
    written = read(results / "jobs.csv")
    assert [each["job"] for each in written] == [each["job"] for each in rows]
    assert written[1]["folder"] == name
    for key in ("seed", "parameter:state", "args", "input:in", "md5:in", "exit_status"):
        assert written[1][key] == str(row[key])


def test_the_table_stays_whole_if_a_part_is_fetched_and_an_archive_has_the_same(working):
    batch = finished(working)
    results = working.directory / "results"
    batch.fetch(results)
    whole = (results / "jobs.csv").read_bytes()
    # A fetch without stderr knows less.
    for part in ({"jobs": f"{batch.name}_1"}, {"stderr": False}, {"stderr": False, "again": True}):
        batch.fetch(results, **part)
        assert (results / "jobs.csv").read_bytes() == whole
    batch.fetch_zip(working.directory / "all.zip")
    with zipfile.ZipFile(working.directory / "all.zip") as archive:
        assert archive.read("jobs.csv") == whole


def test_a_file_of_the_users_own_is_left_alone(working):
    batch = finished(working, 1)
    results = working.directory / "results"
    results.mkdir()
    (results / "jobs.csv").write_text("seed,args\n1,-n 1\n")
    assert batch.fetch(results).table == results / "jobs.boinc.csv"
    assert (results / "jobs.csv").read_text() == "seed,args\n1,-n 1\n"
    (results / "jobs.boinc.csv").write_text("mine")
    assert batch.fetch(results).table is None
    assert (results / "jobs.boinc.csv").read_text() == "mine"


def test_a_batch_is_a_collection_of_its_jobs(working):
    batch = finished(working)
    assert len(batch) == 3
    assert [job.name for job in batch] == [f"{batch.name}_{n}" for n in range(3)]
    job = batch[f"{batch.name}_2"]
    assert (job.parameters, job.args) == ({"seed": 2, "state": "s2"}, ("-n", "2"))
    assert job.inputs["in"].source == str(working.directory / "a.txt")
    assert batch[job.id].name == job.name
    assert job.name in batch
    assert job in batch
    assert "nothing" not in batch
    with pytest.raises(NoSuchJob):
        batch["nothing"]
    empty = working.batch(jobs=0)
    assert len(empty) == 0
    assert empty


def test_a_jobs_outputs_are_where_the_last_fetch_has_put_them(working):
    batch = finished(working, 1)
    job = next(iter(batch))
    with pytest.raises(OutputError, match=r"not fetched on this machine: call batch.fetch\(dir"):
        _ = job.outputs
    assert job.stderr == "starting uppercase args: -n 0\ncalled boinc_finish(0)\n"
    results = working.directory / "results"
    batch.fetch(results)
    assert job.outputs == {"out": results / job.name / "out"}
    assert job.outputs["out"].read_text() == "ONE"
    # Another process finds it, too.
    (again,) = working.open().batch(batch.id)
    assert again.folder == results / job.name
    (results / job.name / "stderr.txt").write_bytes(b"\xff" * 53)
    assert again.stderr == "\ufffd" * 53
    moved = working.directory / "moved"
    results.rename(moved)
    with pytest.raises(OutputError, match="which is not there any more: call batch"):
        _ = job.outputs
    batch.fetch(moved)
    assert job.outputs == {"out": moved / job.name / "out"}
    shutil.rmtree(moved / job.name)
    with pytest.raises(OutputError, match="which fetches what is missing"):
        _ = job.outputs


def test_a_job_that_is_not_done_tells_that_it_has_no_outputs(site):
    batch = site.batch(jobs=2)
    batch.fetch(site.directory / "results")
    first, second = batch
    with pytest.raises(OutputError, match="is waiting, so it has no outputs yet"):
        _ = first.outputs
    assert first.stderr is None
    batch.abort([second])
    with pytest.raises(OutputError, match="failed, so it has no outputs"):
        _ = batch[second.name].outputs
    batch.fetch(site.directory / "results")
    rows = read(site.directory / "results" / "jobs.csv")
    assert [(row["state"], row["why"]) for row in rows] == [
        (JobState.QUEUED.value, ""),
        ("failed", "aborted"),
    ]


def test_on_another_machine_outputs_are_fetched_and_the_rest_is_not_known(working):
    here = finished(working, 2)
    batch = working.open(home="other").batch(here.id)
    results = working.directory / "results"
    batch.fetch(results)
    job = batch[f"{batch.name}_0"]
    with pytest.raises(NotKnownHere, match="only the machine that submitted the batch keeps it"):
        _ = job.parameters
    assert job.outputs["out"].read_text() == "ONE"
    row = read(results / "jobs.csv")[0]
    assert list(row) == ["job", "args", *LAST]
    assert (row["args"], row["exit_status"]) == ("", "0")
    # Where it is known, the same directory gets the rest.
    here.fetch(results)
    assert read(results / "jobs.csv")[0]["seed"] == "0"
    # And keeps it, wherever it is fetched again.
    whole = (results / "jobs.csv").read_bytes()
    batch.fetch(results)
    assert (results / "jobs.csv").read_bytes() == whole


def test_parts_that_are_fetched_at_the_same_time_all_get_their_rows(working):
    batch = finished(working, 8)
    results = working.directory / "results"
    at_once(lambda job: job.fetch(results), batch)
    assert {row["job"] for row in read(results / "jobs.csv")} == {job.name for job in batch}


def test_two_batches_in_one_directory_share_the_table(working):
    results = working.directory / "results"
    one = finished(working, 2, f"{working.name}-1")
    other = finished(working, 1, f"{working.name}-2")
    one.fetch(results)
    other.fetch(results)
    one.fetch(results)
    assert [row["job"] for row in read(results / "jobs.csv")] == [
        *(f"{one.name}_{n}" for n in range(2)),
        f"{other.name}_0",
    ]


# -- rows and cells

NAMES = st.text(
    st.characters(codec="utf-8") | st.just("\r"), min_size=1, max_size=8
) | st.sampled_from(
    ["job", "args", "state", "folder", "input:in", "md5:in", "parameter:job", "parameter:x"]
)
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9)
)


def listed(name, **more):
    return JobInfo(7, name, 9, "done", **more)


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), min_size=1, max_size=4))
def test_every_parameter_has_a_key_of_its_own(rows):
    jobs = [
        (f"j{n}", Job((), {"in": InlineFile("x")}, parameters=row)) for n, row in enumerate(rows)
    ]
    maker = RowMaker(describe(SubmitRequest("b", "a", jobs), {}), {})
    names = {name for row in rows for name in row}
    assert len(maker.keys) == len(set(maker.keys)) == len({FIRST, "args", *LAST}) + 2 + len(names)
    for (job, _), given_ in zip(jobs, rows, strict=True):
        made = maker.row(listed(job))
        assert tuple(made) == maker.keys
        for name, value in given_.items():
            assert made.get(name) == value or made[f"parameter:{name}"] == value
        assert (made["job"], made["input:in"]) == (job, "inline:x")


TEXTS = st.text(st.characters(codec="utf-8") | st.sampled_from('\r\n",;\0'), max_size=9)


@given(st.lists(TEXTS, min_size=1, max_size=4, unique=True), TEXTS, NAMES)
def test_what_is_written_is_read_by_any_reader_of_csv(tmp_path_factory, jobs, text, key):
    root = tmp_path_factory.mktemp("csv")
    keys = ("job", f"x{key}", *LAST)
    rows = [{**dict.fromkeys(keys), "job": name, f"x{key}": text} for name in jobs]
    path = records.write_table(root, keys, set(jobs), rows)
    assert path is not None
    found = read(path)
    assert [row[f"x{key}"] for row in found] == [text] * len(jobs)
    assert not any(row["job"].startswith(("=", "+", "-", "@")) for row in found)
    if "jobs.csv" not in jobs:  # its folder would be here
        again = records.write_table(root, keys, set(jobs[:1]), rows[:1])
        assert again == path
        assert read(path) == found


def test_what_a_stranger_says_is_no_formula(tmp_path):
    keys = ("job", "args", *LAST)
    row = {**dict.fromkeys(keys), "job": "j", "args": "-n 1", "why": "=HYPERLINK(1)\x1b[2J"}
    path = records.write_table(tmp_path, keys, {"j"}, [row])
    assert path is not None
    (found,) = read(path)
    assert (found["args"], found["why"]) == ("-n 1", "'=HYPERLINK(1)\\x1b[2J")


def test_a_failed_job_tells_its_exit_status_and_why():
    job = JobInfo(7, "j", 0, "error", ("too_many_error_results",), (3, 3), 1.5)
    assert job.state is JobState.FAILED
    row = RowMaker(None, {7: JobEnd(job)}).row(job)
    assert (row["exit_status"], row["cpu_time"]) == (3, 1.5)
    assert "exit status 3" in row["why"]
