"""BOINC_FETCH_OUTPUT from a local project, over HTTP, through a proxy that can go wrong."""

import pytest

from boinc_gahp.config.settings import JobSettings, Settings
from boinc_gahp.errors import NotFound, OutputError
from boinc_gahp.fetch.job_directory import fetch_output
from boinc_gahp.submit.control import retire_batch
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.types import Job, LocalFile, SubmitRequest
from tests.fetch.farm import TEXT, contents, everything, some
from tests.helpers import at_once, wait_for
from tests.inside import unfinished_jobs


def test_all_outputs_stderr_exit_status_and_times(healthy, home):
    before = healthy.count("workunit_file")
    result = healthy.fetch(everything("upper#1.0", home))
    assert result.exit_status == 0
    assert result.elapsed_time > 0
    assert contents(home) == {
        "job.err": b"starting uppercase args: \ncalled boinc_finish(0)\n",
        "out": TEXT.upper(),
    }
    assert healthy.count("workunit_file") == before, "the authenticator is in no URL"


@pytest.mark.parametrize("order", [("out0", "out1", "out2"), ("out2",), ("out1", "out2", "out0")])
def test_no_output_gets_anothers_content(order, healthy, home):
    specs = ", ".join(f"{name}>{name}" for name in order)
    with healthy.context() as context:
        fetch_output(context, some("optmid#1.0", home, specs))
        found = contents(home)
        assert sorted(found) == sorted({"job.err", *order} - {"out1"})
        assert found["out2"].startswith(b"sizes ")
        fetch_output(context, some("optmid#1.1", home, specs))
    found = contents(home)
    assert found["out2"].startswith(b"sizes ")
    if "out1" in order:
        assert found["out1"] == b"optional output\n"


def test_an_unknown_output_is_reported_before_anything_is_written(healthy, home):
    with pytest.raises(OutputError, match="its outputs are: 'out0', 'out1', 'out2'"):
        healthy.fetch(some("multi#1.0", home, "typo>typo, out0>out0"))
    assert contents(home) == {}


def test_an_archives_members_take_the_part_of_the_outputs(healthy, home):
    healthy.fetch(everything("zip#1.0", home))
    assert contents(home) == {
        "cmdline.txt": b"-v x",
        "job.err": b"",
        "sub/len.txt": b"6",
        "upper.txt": b"PACKED",
    }


def test_an_archives_members_can_be_chosen_and_renamed(healthy, home):
    members = "sub/len.txt>length, any/upper.txt>U, out.zip>whole.zip"
    healthy.fetch(some("zip#1.0", home, f"{members}, job.out>job.out, job.err>job.err"))
    assert sorted(contents(home)) == ["U", "job.err", "job.out", "length", "whole.zip"]
    assert contents(home)["length"] == b"6"
    assert contents(home)["whole.zip"].startswith(b"PK")
    with pytest.raises(OutputError, match=r"'upper.txt', 'sub/len.txt', 'cmdline.txt'"):
        healthy.fetch(some("zip#1.0", home, "typo>typo, upper.txt>U"))


@pytest.mark.parametrize("unpack", [True, False])
def test_compressed_outputs_are_unpacked_if_so_set(unpack, healthy, home):
    settings = Settings(jobs=JobSettings(gunzip_outputs=unpack))
    healthy.fetch(everything("foreign.0", home), settings=settings)
    data = contents(home)["out"]
    assert data == TEXT.upper() if unpack else data.startswith(b"\x1f\x8b")


def test_a_job_whose_name_tells_no_batch_is_found(healthy, home):
    before = healthy.count("workunit_file"), healthy.count("query_batches")
    with healthy.context() as context:
        for _ in range(3):
            fetch_output(context, everything("foreign.0", home))
    assert healthy.count("workunit_file") == before[0]
    assert healthy.count("query_batches") == before[1] + 1


def test_a_job_that_is_not_finished_is_an_error_that_says_so(healthy, home, tmp_path):
    healthy.local.pause_volunteers()
    name = f"late-{tmp_path.name}"
    with healthy.context() as context:
        submit(context, make_late(name, tmp_path))
        try:
            with pytest.raises(OutputError, match=r"is not finished .*queued"):
                fetch_output(context, everything(f"{name}#1.0", home))
        finally:
            healthy.local.resume_volunteers()
        wait_for(lambda: unfinished_jobs(healthy.local) == 0, "the job's end")
        # The same context: what it has learned of the batch does not hold it back.
        assert fetch_output(context, everything(f"{name}#1.0", home)).exit_status == 0
    assert contents(home)["out"] == b"LATE"


def make_late(name, room, job=""):
    (room / "late").write_bytes(b"late")
    files = {"in": LocalFile(str(room / "late"))}
    return SubmitRequest(name, "uppercase", [(job or f"{name}#1.0", Job(inputs=files))])


@pytest.mark.parametrize("name", ["nosuch#1.0", "nosuch"])
def test_an_unknown_job_is_an_error_that_says_so(name, healthy, home):
    with pytest.raises(NotFound, match="no such job"):
        healthy.fetch(everything(name, home))
    assert contents(home) == {}


@pytest.mark.parametrize("foreign", [False, True], ids=["named for its batch", "foreign"])
def test_a_retired_batchs_job_is_still_fetched(foreign, healthy, home, tmp_path):
    name = f"retired-{tmp_path.name}"
    job = f"{name}-job" if foreign else f"{name}#1.0"
    with healthy.context() as context:
        submit(context, make_late(name, tmp_path, job))
        wait_for(lambda: unfinished_jobs(healthy.local) == 0, "the job's end")
        retire_batch(context, name)
    assert healthy.fetch(everything(job, home)).exit_status == 0
    assert contents(home)["out"] == b"LATE"


def test_only_what_is_not_there_as_it_was_delivered_is_fetched_again(healthy, home, tmp_path):
    request = everything("multi#1.1", home)
    first = healthy.fetch(request, cache=tmp_path / "cache")
    with healthy.context(tmp_path / "cache") as context:
        assert fetch_output(context, request) == first
        found, gets = contents(home), healthy.count("result_file")
        (home / "out0").unlink()
        (home / "out1").write_bytes(bytes(len(found["out1"])))
        # A copy with the same contents, as a restored backup: the MD5 tells.
        (home / "copy").write_bytes(found["out2"])
        (home / "copy").replace(home / "out2")
        fetch_output(context, request)
    assert contents(home) == found
    assert healthy.count("result_file") == gets + 2


def test_a_cache_that_cannot_be_kept_changes_nothing(healthy, home, tmp_path, caplog):
    (tmp_path / "cache").write_text("a file in the way")
    with healthy.context(tmp_path / "cache") as context:
        for _ in range(2):
            fetch_output(context, everything("multi#1.1", home))
    assert contents(home)["out0"] == b"one two\n"
    assert caplog.text.count("placed.sqlite is not used") == 1


def test_many_fetches_of_a_batch_look_it_up_once(healthy, home):
    before = {rpc: healthy.count(rpc) for rpc in ("query_batch", "get_templates")}

    def fetch(number):
        (home / str(number)).mkdir()
        request = everything(f"upper#1.{number}", home / str(number))
        return fetch_output(context, request).exit_status

    with healthy.context() as context:
        assert at_once(fetch, range(20)) == [0] * 20
    assert all((home / str(number) / "out").read_bytes() == TEXT.upper() for number in range(20))
    assert healthy.count("query_batch") - before["query_batch"] == 1
    assert healthy.count("get_templates") - before["get_templates"] == 1
