"""Outputs of batches, fetched from a local project with all its misbehaviours."""

import dataclasses
import json
import threading
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from boinc_gahp.api.outputs import fetching
from boinc_gahp.api.outputs.folders import NOTE
from boinc_gahp.errors import NoSuchJob, OutputError, PermissionDenied, ProjectDown, RpcError
from tests import faultproxy
from tests.api.conftest import Site
from tests.fetch.farm import TEXT, contents, farm, healthy  # noqa: F401  (fixtures)
from tests.helpers import at_once, wait_for

pytestmark = pytest.mark.long

ERR = b"starting uppercase args: \ncalled boinc_finish(0)\n"
#: What there is of the batch "upper" when all of it is here.
ALL_UPPER = {
    f"upper#1.{number}/{name}": data
    for number in range(20)
    for name, data in (("out", TEXT.upper()), ("stderr.txt", ERR))
}


def files_of(jobs):
    return {name: data for name, data in ALL_UPPER.items() if name.partition("/")[0] in jobs}


@dataclasses.dataclass
class Desk(Site):
    """Somebody at the farm, with a directory to fetch into."""

    @property
    def results(self):
        return self.directory / "results"

    def fetch(self, name="upper", home=".", **options):
        """Fetch a batch, perhaps on another machine."""
        return self.open(home=home).batch(name).fetch(self.results, **options)

    def have(self):
        """Return the jobs' files in the results, hidden ones too; not notes and jobs.csv."""
        found = contents(self.results).items()
        return {name: data for name, data in found if not name.endswith((f"/{NOTE}", "jobs.csv"))}


@pytest.fixture
def desk(healthy, tmp_path):  # noqa: F811
    """A desk at the farm."""
    with ExitStack() as stack:
        yield Desk(tmp_path, healthy.local, healthy.proxy, healthy.local.authenticator, stack)


# -- what is fetched, and what is not again


def test_every_job_gets_a_folder_with_its_outputs_and_stderr(desk):
    told = []
    fetched = desk.fetch(progress=told.append)
    assert desk.have() == ALL_UPPER
    assert dataclasses.replace(fetched, errors={}) == fetching.Fetched(
        desk.results,
        fetched=20,
        nbytes=20 * (len(TEXT) + len(ERR)),
        table=desk.results / "jobs.csv",
    )
    assert fetched.is_complete
    jobs = [each for each in told if each.unit == "jobs"]
    assert (jobs[0].done, jobs[-1].done) == (0, 20)
    assert {each.total for each in jobs} == {20}
    assert [each.done for each in told if each.unit == "bytes"][-1] == 20 * len(TEXT)


def test_folders_and_their_directory_are_on_the_disk_when_it_ends(desk, monkeypatch):
    synced = []
    monkeypatch.setattr(
        "boinc_gahp.fetch.destinations.sync",
        lambda directory: synced.append(Path(f"/proc/self/fd/{directory}").readlink()),
    )
    jobs = ["upper#1.0", "upper#1.1", "upper#1.2"]
    desk.fetch(jobs=jobs)
    assert {desk.results / job for job in jobs} <= set(synced)
    assert synced[-1] == desk.results


def test_a_job_that_is_here_is_not_asked_for_again_on_any_machine(desk):
    desk.fetch(jobs=["upper#1.3", "upper#1.4"])
    counts = {rpc: desk.proxy.count(rpc) for rpc in ("query_job", "result_file")}
    moved = desk.results.rename(desk.directory / "moved")
    for home in (".", "other machine"):
        batch = desk.open(home=home).batch("upper")
        again = batch.fetch(moved, jobs=["upper#1.3", "upper#1.4"])
        assert (again.fetched, again.here, again.nbytes) == (0, 2, 0)
    assert counts == {rpc: desk.proxy.count(rpc) for rpc in counts}


def test_what_was_deleted_or_has_another_size_comes_again_and_nothing_else(desk):
    jobs = [f"upper#1.{number}" for number in range(5)]
    desk.fetch(jobs=jobs)
    before = desk.have()
    (desk.results / "upper#1.0/out").unlink()
    (desk.results / "upper#1.1/out").write_text("cut")
    (desk.results / "upper#1.2/stderr.txt").unlink()
    for path in (desk.results / "upper#1.3").iterdir():
        path.unlink()
    (desk.results / "upper#1.3").rmdir()
    (desk.results / "upper#1.4/mine.txt").write_text("plot")
    gets, asked = desk.proxy.count("result_file"), desk.proxy.count("query_completed_job")
    again = desk.fetch(home="other machine", jobs=jobs)
    assert (again.fetched, again.here) == (4, 1)
    assert desk.have() == {**before, "upper#1.4/mine.txt": b"plot"}
    assert desk.proxy.count("result_file") == gets + 3
    assert desk.proxy.count("query_completed_job") == asked + 2


def test_again_fetches_everything(desk):
    desk.fetch(jobs=["upper#1.7"])
    (desk.results / "upper#1.7/out").write_bytes(b"x" * len(TEXT))
    assert desk.fetch(jobs=["upper#1.7"]).here == 1
    assert desk.fetch(jobs=["upper#1.7"], again=True).fetched == 1
    assert desk.have()["upper#1.7/out"] == TEXT.upper()


def test_stderr_costs_nothing_if_it_is_not_wanted_and_comes_when_it_is(desk):
    asked = desk.proxy.count("query_completed_job")
    desk.fetch(jobs=["upper#1.8"], stderr=False)
    assert sorted(desk.have()) == ["upper#1.8/out"]
    assert desk.proxy.count("query_completed_job") == asked
    gets = desk.proxy.count("result_file")
    assert desk.fetch(jobs=["upper#1.8"]).fetched == 1
    assert desk.have()["upper#1.8/stderr.txt"] == ERR
    assert desk.proxy.count("result_file") == gets
    (desk.results / "upper#1.8/stderr.txt").unlink()
    assert desk.fetch(jobs=["upper#1.8"], stderr=False).here == 1
    assert desk.fetch(jobs=["upper#1.8"]).fetched == 1
    assert desk.have()["upper#1.8/stderr.txt"] == ERR


def test_an_optional_output_that_is_absent_is_no_error_and_not_looked_for_again(desk):
    assert desk.fetch("optmid").is_complete
    names = {Path(name).name for name in desk.have() if name.startswith("optmid#1.0/")}
    assert names == {"out0", "out2", "stderr.txt"}
    assert desk.have()["optmid#1.1/out1"] == b"optional output\n"
    assert desk.fetch("optmid").here == 2


def test_an_apps_archive_stays_one_and_what_volunteers_compressed_is_plain(desk):
    assert desk.fetch("zip").is_complete
    assert desk.fetch("gzip").is_complete
    have = desk.have()
    (packed,) = (desk.results / name for name in have if name.endswith(".zip"))
    with zipfile.ZipFile(packed) as archive:
        assert archive.testzip() is None
    assert TEXT.upper() in [data for name, data in have.items() if name.startswith("foreign")]


def test_failed_and_unknown_jobs(desk):
    fetched = desk.fetch("fail")
    assert (fetched.fetched, fetched.failed, fetched.unfinished) == (1, 1, 0)
    assert not fetched.is_complete
    with pytest.raises(NoSuchJob, match=r"has no job 'upper#1\.99'; did you mean 'upper#1\."):
        desk.fetch(jobs=["upper#1.1", "upper#1.99"])
    assert not (desk.results / "upper#1.1").exists()


# -- while things go wrong


def test_an_output_that_never_comes_is_that_jobs_error_alone(desk):
    page, jobs = faultproxy.html(), ["upper#1.0", "upper#1.1"]
    desk.proxy.choose = lambda exchange: page if "upper%231.0" in exchange.target else None
    fetched = desk.fetch(jobs=jobs)
    desk.proxy.choose = lambda _: None
    assert (list(fetched.errors), fetched.fetched) == (jobs[:1], 1)
    error = fetched.errors["upper#1.0"]
    assert isinstance(error, RpcError)
    assert error.__traceback__ is None
    assert set(desk.have()) == set(files_of(jobs)) - {"upper#1.0/out"}
    again = desk.fetch(jobs=jobs)
    assert (again.fetched, again.here) == (1, 1)


def test_a_project_that_goes_down_meanwhile_stops_all_with_one_error(desk):
    def down(progress):
        if progress.unit == "jobs" and progress.done == 0:
            desk.local.core.web_stopped = True

    with pytest.raises(ProjectDown):
        desk.open(retry=0.3).batch("upper").fetch(desk.results, progress=down)
    desk.local.core.web_stopped = False
    assert desk.fetch(home="other").is_complete
    assert desk.have() == ALL_UPPER


# -- broken off


def test_a_fetch_that_is_killed_is_finished_by_the_next(desk):
    rpc, skip = "result_file", 9
    gets = desk.proxy.count(rpc)
    desk.proxy.fail(rpc, faultproxy.drip(0.001), times=None, skip=skip)
    with desk.program("project.batch('upper').fetch(given[0])", desk.results) as process:
        wait_for(lambda: desk.proxy.count(rpc) >= gets + skip + 2, "outputs on their way")
        wait_for(lambda: list(desk.results.glob("*/.boinc_gahp-*.part")), "a file that is begun")
        process.kill()
    desk.proxy.heal()
    have = desk.have()
    assert [name for name in have if name.endswith(".part")]
    # What has its name is whole.
    whole = {name: data for name, data in have.items() if not name.endswith(".part")}
    assert whole.items() <= ALL_UPPER.items()
    fetched = desk.fetch()
    assert (fetched.fetched + fetched.here, fetched.errors) == (20, {})
    assert fetched.here >= skip - 4
    assert desk.have() == ALL_UPPER


def test_a_stop_ends_it_soon_and_leaves_nothing_begun(desk):
    stop = threading.Event()

    def enough(progress):
        if progress.unit == "jobs" and progress.done >= 2:
            stop.set()

    desk.proxy.fail("result_file", faultproxy.drip(0.001), times=None, skip=4)
    fetched = desk.fetch(progress=enough, stop=stop)
    assert fetched.stopped
    assert not fetched.is_complete
    assert fetched.fetched < 20
    assert desk.have().items() <= ALL_UPPER.items()
    desk.proxy.heal()
    assert desk.fetch().is_complete


def test_two_at_once_into_the_same_directory_do_no_harm(desk):
    jobs = [f"upper#1.{number}" for number in range(2, 10)]
    found = at_once(lambda home: desk.fetch(home=home, jobs=jobs), ["one", "two"])
    assert [(each.fetched + each.here, each.errors) for each in found] == [(8, {})] * 2
    assert desk.have() == files_of(jobs)


# -- where it cannot be written


def test_directories_that_cannot_be_written_are_reported(desk):
    desk.results.write_text("a file")
    with pytest.raises(OutputError, match="is not a directory: name another one to fetch into"):
        desk.fetch()
    desk.results.unlink()
    desk.results.mkdir()
    (desk.results / "upper#1.0").write_text("a file")
    fetched = desk.fetch(jobs=["upper#1.0", "upper#1.1"])
    assert list(fetched.errors) == ["upper#1.0"]
    assert "is not a directory: move it away" in str(fetched.errors["upper#1.0"])
    assert fetched.fetched == 1


def test_a_folder_of_another_job_is_left_alone(desk):
    desk.fetch(jobs=["upper#1.1"])
    note = desk.results / "upper#1.1" / NOTE
    said = json.loads(note.read_text())
    note.write_text(json.dumps({**said, "project": "https://boinc.example.edu/other/"}))
    (desk.results / "upper#1.1/out").write_text("theirs")
    fetched = desk.fetch(jobs=["upper#1.1"])
    assert "holds the outputs of another job" in str(fetched.errors["upper#1.1"])
    assert (desk.results / "upper#1.1/out").read_text() == "theirs"


# -- archives


def test_an_archive_has_every_output_under_its_right_name(desk):
    target = desk.directory / "all.zip"
    fetched = desk.project.batch("upper").fetch_zip(target)
    assert (fetched.fetched, fetched.files, fetched.is_complete) == (20, 40, True)
    with zipfile.ZipFile(target) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
    assert found.pop("jobs.csv").count(b"\n") == 21
    assert found == ALL_UPPER
    assert not list(desk.directory.glob(".*"))


def test_an_archive_appears_whole_or_not_at_all(desk):
    target = desk.directory / "all.zip"
    target.write_text("old")
    desk.proxy.fail("result_file", faultproxy.body(b"ERROR: bad authenticator"), skip=5)
    with pytest.raises(PermissionDenied):
        desk.project.batch("upper").fetch_zip(target, stderr=False)
    assert target.read_text() == "old"
    assert not list(desk.directory.glob(".boinc_gahp-*"))
