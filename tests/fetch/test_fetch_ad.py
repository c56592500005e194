"""Fetches as a job ad asks for them, and fetches that are withdrawn on the way."""

import errno
import io
import os
import threading
import zipfile
from pathlib import Path

import pytest

from boinc_gahp.errors import JobFailed, NotFound, OutputError, Stopped
from boinc_gahp.fetch.destinations import CancelScope, Directories, _syncs
from boinc_gahp.fetch.failures import look_up_failure
from boinc_gahp.fetch.job_directory import fetch_output
from boinc_gahp.fetch.temporary import Temporaries
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.submit.query import query_jobs
from tests.fetch.jobs import (
    INSTANCE,
    JOB,
    cancel_at_every_step,
    completed,
    done,
    ended,
    failed,
    found,
    note_syncs,
    output_template,
)
from tests.helpers import wait_for
from tests.submit.scripted import Script, batch, error, job


def fetch(
    script,
    home,
    *,
    out="logs/job.out",
    err="errors/deep/job.err",
    scope=None,
    specs=(),
    **more,
):
    request = FetchRequest(JOB, str(home), err, "ALL", specs, is_ad=True, stdout=out, **more)
    result = fetch_output(script.context(), request, *([scope] if scope else []))
    assert result.exit_status == 0


def packed():
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in ("a", "sub/b", "stdout"):
            archive.writestr(name, f"member {name}")
    script = done("out.zip")
    script.files[INSTANCE, 0] = (f"{INSTANCE}_r1_0", data.getvalue())
    return script


PLAIN = {
    "errors": None,
    "errors/deep": None,
    "errors/deep/job.err": b"said\n",
    "logs": None,
    "logs/job.out": b"",
    "out0": b"file 0",
    "out1": b"file 1",
}
MEMBERS = {
    "a": b"member a",
    "errors": None,
    "errors/deep": None,
    "errors/deep/job.err": b"said\n",
    "logs": None,
    "logs/job.out": b"member stdout",
    "sub": None,
    "sub/b": b"member sub/b",
}


def plain():
    return done("out0", "out1", "out2", optional=("out2",), present=(0, 1))


KINDS = pytest.mark.parametrize(
    ("script", "whole"),
    [pytest.param(plain, PLAIN, id="files"), pytest.param(packed, MEMBERS, id="archive")],
)


@KINDS
def test_everything_is_where_the_ad_wants_it(script, whole, tmp_path):
    for _ in range(2):
        fetch(script(), tmp_path)
        assert found(tmp_path) == whole


@KINDS
def test_nothing_appears_after_a_cancel_at_any_step(script, whole, tmp_path):
    def cancelled(home, scope):
        fetch(script(), home, scope=scope)

    cancel_at_every_step(cancelled, tmp_path, whole, {"out0": b"old"})


@KINDS
def test_every_change_waits_for_a_cancel_and_a_cancel_for_it(script, whole, tmp_path, monkeypatch):
    """A cancel that comes between two looks at it finds the change under way, or keeps it out."""
    scope = CancelScope()

    def guarded(change):
        def make(*names, **more):
            assert scope._inside, (change, names)
            return change(*names, **more)

        return make

    for name in ("mkdir", "rename", "replace", "link"):
        monkeypatch.setattr(os, name, guarded(getattr(os, name)))
    fetch(script(), tmp_path, scope=scope)
    assert found(tmp_path) == whole


def test_a_fetch_that_is_cancelled_before_it_begins_asks_nothing(tmp_path):
    scope, script = CancelScope(), plain()
    scope.close()
    with pytest.raises(Stopped):
        fetch(script, tmp_path, scope=scope)
    assert (script.asked, found(tmp_path)) == ([], {})


def test_what_is_on_its_way_vanishes_with_the_cancel_and_not_when_the_network_wakes(tmp_path):
    scope = CancelScope()
    registry = Temporaries()
    file = registry.file(tmp_path / "out", Directories(scope))
    file.write(b"half")
    scope.close()
    assert found(tmp_path) == {}
    with pytest.raises(Stopped):
        file.write(b"the rest")
    with pytest.raises(Stopped):
        file.commit()
    file.discard()
    assert found(tmp_path) == {}


def test_the_directories_are_on_the_disk_too(tmp_path, monkeypatch):
    synced = note_syncs(tmp_path, monkeypatch)
    fetch(plain(), tmp_path)
    assert {"", "/logs", "/errors", "/errors/deep"} <= set(synced)
    for directory in ("/logs", "/errors/deep"):
        # Its files, and then the directory itself, once they have their names.
        *_, last_file = (at for at, path in enumerate(synced) if f"{directory}/.boinc" in path)
        assert directory in synced[last_file:]


def note_directories(monkeypatch):
    """Return a list that gets each directory instead of its being synced."""
    synced = []
    monkeypatch.setattr(
        "boinc_gahp.fetch.destinations.sync",
        lambda directory: synced.append(Path(f"/proc/self/fd/{directory}").readlink()),
    )
    return synced


def test_a_directory_is_synced_once_for_all_of_a_jobs_files(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    synced = note_directories(monkeypatch)
    with Directories() as directories:
        for name in ("a", "b", "sub/c"):
            with Temporaries().file(tmp_path / name, directories=directories) as file:
                file.write(b"text")
                file.commit()
        assert synced == []
    assert synced == [tmp_path, tmp_path / "sub"]


@pytest.mark.parametrize("fails", [False, True])
def test_threads_that_wait_for_the_same_directory_share_a_sync_and_its_failure(
    fails, tmp_path, monkeypatch
):
    began, go_on = threading.Event(), threading.Event()
    syncs = []

    def slow(directory):
        syncs.append(directory)
        is_first = not began.is_set()
        began.set()
        assert go_on.wait(60)
        if fails and not is_first:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("boinc_gahp.fetch.destinations.sync", slow)
    registry = Temporaries()
    failed = []

    def put(name):
        try:
            with (
                Directories() as directories,
                registry.file(tmp_path / name, directories=directories) as file,
            ):
                file.commit()
        except OutputError as error:
            failed.append(str(error))

    threads = [threading.Thread(target=put, args=(f"out{number}",)) for number in range(6)]
    threads[0].start()
    assert began.wait(60)
    for thread in threads[1:]:
        thread.start()
    wait_for(
        lambda: sum(len(flight.waiting) for flight in _syncs._flights.values()) == 5,
        "the others wait",
    )
    go_on.set()
    for thread in threads:
        thread.join(60)
    # The first one began before the others had their names.
    if fails:
        assert sorted(failed) == [
            f"{str(tmp_path / f'out{number}')!r} cannot be written: Input/output error"
            for number in range(1, 6)
        ]
    else:
        assert failed == []
        assert len(syncs) == 2


def test_a_job_with_many_directories_keeps_few_of_them_open_and_syncs_all(tmp_path, monkeypatch):
    monkeypatch.setattr("boinc_gahp.fetch.destinations._MOST_OPEN", 3)
    synced = note_directories(monkeypatch)
    places = [tmp_path / str(number) for number in range(10)]
    registry = Temporaries()
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    with Directories() as directories:
        (tmp_path / "0").mkdir()
        kept = registry.file(tmp_path / "0" / "kept", directories=directories)
        for place in places:
            place.mkdir(exist_ok=True)
            with registry.file(place / "out", directories=directories) as file:
                file.commit()
        assert len(list(descriptors.iterdir())) < before + 3 + 3
        kept.commit()
    assert set(synced) == set(places)
    assert len(list(descriptors.iterdir())) == before


def test_a_disk_that_fails_at_the_end_is_reported_unless_something_else_went_wrong(
    tmp_path, monkeypatch
):
    def failing(_directory):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("boinc_gahp.fetch.destinations.sync", failing)

    def put(error=None):
        with (
            Directories() as directories,
            Temporaries().file(tmp_path / "out", directories=directories) as file,
        ):
            file.commit()
            if error is not None:
                raise error

    with pytest.raises(OutputError, match="out' cannot be written: Input/output error"):
        put()
    with pytest.raises(ZeroDivisionError):
        put(ZeroDivisionError())


def test_a_missing_directory_of_a_remap_is_named(tmp_path):
    with pytest.raises(OutputError, match=r"res' does not exist: create it"):
        fetch(plain(), tmp_path, specs=(("out0", "res/x"),))
    assert not (tmp_path / "res").exists()


def test_a_directory_of_stdout_that_cannot_be_made_is_reported(tmp_path):
    (tmp_path / "logs").write_text("in the way")
    with pytest.raises(OutputError, match=r"logs/job.out' cannot be written"):
        fetch(plain(), tmp_path)


def test_a_template_of_the_jobs_own_names_its_outputs(tmp_path):
    own = output_template("x", "y")
    script = done("other", present=(0, 1))
    fetch(script, tmp_path, out="stdout", output_template=own)
    assert {"x", "y", "stdout"} <= found(tmp_path).keys()
    assert script.count("get_templates") == 0


def test_a_batchs_id_spares_the_search_for_the_job(tmp_path):
    script = done("out0")
    fetch(script, tmp_path, out=None, batch_id=7)
    assert [asked["batch_id"] for asked in script.arguments("query_batch")] == [["7"]]
    assert script.count("query_batches") == 0


def test_a_job_without_a_result_is_no_output(tmp_path):
    with pytest.raises(JobFailed):
        fetch(failed(ended(9)), tmp_path, out=None, batch_id=7)
    assert found(tmp_path) == {}


def test_a_batch_that_is_gone_is_not_all_there_is_to_ask(tmp_path):
    script = done("out0")
    script.replies["query_batch"] = error("no such batch")
    script.replies["query_batches"] = ""
    script.replies["query_completed_job"] = error("no such job")
    with pytest.raises(NotFound, match="no such job"):
        fetch(script, tmp_path, out=None, batch_id=7)


# -- failures


def test_a_failure_is_all_that_the_project_tells(tmp_path):
    script = failed(ended(9, 11), completed(11, result="error_resultid"))
    told = look_up_failure(script.context(), JOB, 7)
    assert told.job.errors == ("too_many_error_results",)
    assert told.why == "exit status 11"
    assert (told.exit_statuses, told.exit_code) == ((9, 11), 11)
    assert told.stderr == "said\n"
    assert f"instance {INSTANCE}: Error while computing" in told.report("https://x/")


def test_of_a_job_that_was_aborted_before_it_ran_nothing_more_is_asked():
    script = failed(ended(why="cancelled"))
    told = look_up_failure(script.context(), JOB, 7)
    assert (told.why, told.exit_statuses) == ("aborted", ())
    assert [name for name, _ in script.asked] == ["query_batch"]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(lambda: done("out0"), id="done meanwhile"),
        pytest.param(lambda: failed("<status>in_progress</status>"), id="running again"),
    ],
)
def test_a_job_that_is_not_in_error_has_no_failure(script):
    assert look_up_failure(script().context(), JOB, 7) is None


def test_a_job_that_its_batch_lacks_is_not_found():
    with pytest.raises(NotFound, match=r"has no job 'other' in batch 'b' \(id 7\)"):
        look_up_failure(done("out0").context(), "other", 7)


def test_a_batch_is_looked_at_by_its_id():
    jobs = [
        job(1, "a", 119),
        job(2, "b", 0, "<status>queued</status>"),
        job(3, "c", 0, "<error>x</error><status>error</status>"),
        job(4, "d", 0, "<status>odd</status>"),
    ]
    script = Script({"query_batch": batch(7, "n", 1, *jobs)})
    look = query_jobs(script.context(), 7)
    assert look.jobs == (("a", "DONE"), ("b", "UNSENT"), ("c", "ERROR"), ("d", "ODD"))
    assert look.complete
    script = Script({"query_batch": batch(7, "n", 0)})
    assert not query_jobs(script.context(), 7).complete
