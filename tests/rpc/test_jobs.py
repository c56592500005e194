"""iter_jobs: the jobs of a batch however many, all of them or none."""

import tempfile

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError, ProtocolError
from boinc_gahp.rpc._spool import SpooledJobs
from boinc_gahp.rpc.client import WebRpcs
from boinc_gahp.rpc.types import JobInfo
from tests.contract.replay import Reply
from tests.helpers import files_up_to, most_memory
from tests.rpc.canned import URL, inside, project
from tests.rpc.scripted import AUTHENTICATOR, Scripted, ok, short
from tests.submit.scripted import batch


def written(job):
    """Return the job as the project writes it with details."""
    lines = ["        <job>", f"        <id>{job.id}</id>", f"        <name>{job.name}</name>"]
    lines += [f"        <canonical_instance_id>{job.canonical_instance_id}</canonical_instance_id>"]
    lines += [f"   <error>{error}</error>" for error in job.errors]
    lines += [f"            <exit_status>{number}</exit_status>" for number in job.exit_statuses]
    if job.cpu_time is not None:
        lines += [f"            <cpu_time>{job.cpu_time}</cpu_time>"]
    return "\n".join([*lines, f"            <status>{job.status}</status>", "        </job>", ""])


def reply(*jobs):
    return inside("query_batch", batch(7, "sweep", 1) + "\n" + "".join(map(written, jobs)))


def some_jobs(count):
    return [
        JobInfo(n + 1, f"sweep_{n:06d}", 0, "error", ("too_many_error_results",), (11, -5))
        if n % 3
        else JobInfo(n + 1, f"sweep_{n:06d}", n + 9, "done", cpu_time=1.5)
        for n in range(count)
    ]


#: Also forms that no project writes today: they go through the parser instead.
JOBS = st.builds(
    JobInfo,
    id=st.integers(0, 10**12),
    name=st.text(
        st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"),
        min_size=1,
        max_size=20,
    ).filter(lambda name: "</name>" not in name),
    canonical_instance_id=st.integers(0, 10**12),
    status=st.sampled_from(["queued", "in_progress", "error", "done"]),
    errors=st.lists(st.sampled_from(["cancelled", "couldn't_start", "a b"])).map(tuple),
    exit_statuses=st.lists(st.integers(-(2**31), 2**31)).map(tuple),
    cpu_time=st.none() | st.floats(0, 1e12),
)


@given(st.lists(JOBS, max_size=8), st.integers(1, 300))
def test_the_jobs_are_those_that_were_written_however_the_reply_is_cut_into_pieces(jobs, chunk):
    assert list(project(reply(*jobs), chunk=chunk).iter_jobs(7)) == jobs


def test_a_reply_that_breaks_off_gives_no_job_at_all():
    whole = reply(*some_jobs(1000))
    for end in (len(whole) // 2, whole.rindex(b"<job>"), len(whole) - len(b"</query_batch>\n")):
        jobs = project(whole[:end]).iter_jobs(7)
        with pytest.raises(ProtocolError):
            next(jobs)


def test_after_a_reply_that_broke_off_every_job_comes_once():
    jobs = some_jobs(1000)
    with Scripted() as server:
        server.answers += [short(reply(*jobs), missing=9000), ok(reply(*jobs))]
        with server.client(retry_total=20) as asked:
            assert list(asked.iter_jobs(7)) == jobs
        assert len(server.requests) == 2


class _Long:
    """A project with a batch that is never whole in memory."""

    def __init__(self, jobs):
        self.jobs = jobs

    def send(self, _):
        def chunks():
            yield b"<query_batch>" + batch(7, "sweep", 1).encode()
            for start in range(0, self.jobs, 500):
                part = some_jobs(500)
                yield "".join(
                    written(JobInfo(start + job.id, f"j{start + job.id}", 0, "queued"))
                    for job in part
                ).encode()
            yield b"</query_batch>"

        answer = Reply(b"", {"Content-Type": "text/xml"})
        answer.chunks = chunks
        return answer


@pytest.mark.long
def test_memory_does_not_grow_with_the_jobs():
    def read(count):
        asked = WebRpcs(URL, AUTHENTICATOR, transport=_Long(count))
        assert sum(1 for _ in asked.iter_jobs(7)) == count

    # Other threads of this process allocate, too.
    assert most_memory(lambda: read(12_000)) < 2 * most_memory(lambda: read(2_500))


def test_a_batch_is_reported_without_its_jobs():
    asked = project(reply(*some_jobs(300)))
    assert asked.batch(7) == asked.query_batch(batch_id=7).batch


def test_a_full_temporary_directory_is_reported_as_that(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(OutputError, match=r"no room for the jobs of batch 7 .*TMPDIR"):
        next(project(reply(*some_jobs(20_000))).iter_jobs(7))


@pytest.mark.parametrize("lacking", [100, 100_000], ids=["at the end", "on the way"])
def test_a_disk_that_fills_up_is_reported_as_that(lacking):
    with SpooledJobs("batch 7") as spooled:
        for job in some_jobs(10_010):
            spooled.extend((job,))
        list(spooled)
        nbytes = spooled._file.tell()
    full = pytest.raises(OutputError, match="no room for the jobs of batch 7")
    with files_up_to(nbytes - lacking), full:
        next(project(reply(*some_jobs(10_010))).iter_jobs(7))
