"""A batch's name stands for its jobs: the same name with others is an error, not an old result."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.comparing import difference
from boinc_gahp.api.manifest import describe
from boinc_gahp.api.manifest_files import Manifests
from boinc_gahp.api.table import jobs_from
from boinc_gahp.api.types import InlineFile, Job, Parameters
from boinc_gahp.errors import BatchConflict, RpcError
from boinc_gahp.submit.types import SubmitRequest
from tests.faultproxy import hang, status
from tests.helpers import wait_for


def jobs(*args, text="x"):
    return [Job(each, {"in": InlineFile(text)}) for each in args]


def records(site):
    directory = site.directory / "state" / "submitted"
    return sorted(directory.iterdir()) if directory.exists() else []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (jobs("-n 1", "-n 3"), "arguments of job NAME_1; "),
        (jobs("-n 5", "-n 6"), "arguments of 2 jobs; "),
        (jobs("-n 1", "-n 2", text="y"), 'file "in" of 2 jobs; '),
        (jobs("-n 1"), "missing job NAME_1; "),
        (jobs("-n 1", "-n 2", "-n 3"), "new job NAME_2; "),
        (
            [Job("-n 1", {"in": InlineFile("x")}, priority=3, memory=1e9), *jobs("-n 3")],
            "priority of job NAME_0, memory of job NAME_0, arguments of job NAME_1; ",
        ),
        (
            [Job("-n 3", {"a": InlineFile("x")}, priority=3)],
            'arguments of job NAME_0, file "in" of job NAME_0, file "a" of job NAME_0, and more; ',
        ),
    ],
    ids=["an argument", "all arguments", "a file", "fewer jobs", "more jobs", "three", "more"],
)
def test_the_same_name_with_other_jobs_is_refused_and_what_differs_is_told(site, other, told):
    name = f"same-{site.directory.name}"
    # Names of their own, for those made of the number of jobs would differ as well.
    named = [replace(job, name=f"{name}_{n}") for n, job in enumerate(jobs("-n 1", "-n 2"))]
    others = [replace(job, name=f"{name}_{n}") for n, job in enumerate(other)]
    batch = site.project.submit("uppercase", named, name=name)
    sent = site.proxy.count("submit_batch")
    with pytest.raises(BatchConflict) as caught:
        site.open().submit("uppercase", others, name=name)
    assert str(caught.value).startswith(f"batch {name!r} (id {batch.id}) of ")
    assert told.replace("NAME", name) in str(caught.value)
    assert site.proxy.count("submit_batch") == sent
    plan = site.project.plan("uppercase", others, name=name)
    assert isinstance(plan.refusal, BatchConflict)
    again = site.open().submit("uppercase", named, name=name)
    assert (again.id, again.existed, again.compared) == (batch.id, True, True)


def test_other_rows_with_the_same_words_are_the_same_jobs(site):
    name = f"rows-{site.directory.name}"
    for seed in (1, 2):
        batch = site.open().submit(
            "uppercase", [replace(jobs("-n 1")[0], parameters={"s": seed})], name=name
        )
    assert (batch.existed, batch.compared) == (True, True)
    assert next(iter(batch)).parameters == {"s": 1}


def test_a_conflict_tells_a_name_for_a_new_batch(site):
    name = f"pi-{site.directory.name}"
    site.project.submit("uppercase", jobs("-n 1"), name=name)
    site.project.submit("uppercase", jobs("-n 1"), name=f"{name}-2")
    for taken in (name, f"{name}-2"):
        with pytest.raises(BatchConflict) as caught:
            site.project.submit("uppercase", jobs("-n 2"), name=taken)
        assert str(caught.value).endswith(f"--name {name}-3 (in Python name='{name}-3')")
    within = jobs_from(
        [{"n": 1}], args="-n {n}", inputs={"in": InlineFile("x")}, name="{batch}_{n}"
    )
    site.project.submit("uppercase", within, name=f"{name}-n")
    with pytest.raises(BatchConflict, match=r"in Python name='.*'\)$"):
        site.project.submit("uppercase", [replace(within[0], args="-n 2")], name=f"{name}-n")
    named = replace(jobs("-n 1")[0], name=f"{name}_x")
    site.project.submit("uppercase", [named], name=f"{name}-3")
    with pytest.raises(BatchConflict, match="and its jobs, too: a job's name is used once"):
        site.project.submit("uppercase", [replace(named, args="-n 2")], name=f"{name}-3")


def test_other_parameters_are_other_jobs(site):
    name = f"parameters-{site.directory.name}"
    site.project.submit("uppercase", jobs(""), name=name, lease=5000)
    with pytest.raises(BatchConflict, match="than these: delay; to"):
        site.project.submit(
            "uppercase", jobs(""), name=name, parameters=Parameters(delay_bound=7200)
        )
    assert site.project.submit("uppercase", jobs(""), name=name, lease=6000).compared


def test_files_are_compared_by_what_is_in_them(site):
    name = f"files-{site.directory.name}"
    path, copy = site.directory / "a.txt", site.directory / "b.txt"
    path.write_text("one")
    copy.write_text("one")
    site.project.submit("uppercase", [Job("", {"in": path})], name=name)
    assert site.open().submit("uppercase", [Job("", {"in": copy})], name=name).compared
    path.write_text("two")
    with pytest.raises(BatchConflict, match='file "in" of job '):
        site.open().submit("uppercase", [Job("", {"in": path})], name=name)
    # What is gone cannot be compared, and was needed only once.
    path.unlink()
    assert site.open().submit("uppercase", [Job("", {"in": path})], name=name).existed
    path.write_text("two")
    with pytest.raises(BatchConflict, match='file "in" of job '):
        site.open().submit("uppercase", [Job("", {"in": path})], name=name)


def test_what_was_submitted_elsewhere_is_not_compared_and_that_is_reported(site):
    name = f"elsewhere-{site.directory.name}"
    site.project.submit("uppercase", jobs("-n 1"), name=name)
    again = site.elsewhere().submit("uppercase", jobs("-n 2"), name=name)
    assert (again.existed, again.compared) == (True, False)


def test_what_was_begun_elsewhere_and_completed_here_is_not_compared(site):
    name = f"begun-{site.directory.name}"
    named = [replace(job, name=f"{name}_{n}") for n, job in enumerate(jobs("-n 1", "-n 2"))]
    begun = site.elsewhere().submit("uppercase", named[:1], name=name)
    with site.local.core.db.write() as connection:
        connection.execute("UPDATE batch SET state = 0 WHERE id = ?", (begun.id,))
    assert not site.project.submit("uppercase", named, name=name).existed
    again = site.open().submit("uppercase", named, name=name)
    assert (again.existed, again.compared) == (True, False)


@pytest.mark.long
def test_jobs_that_were_never_sent_may_be_others_the_next_time(site):
    name = f"never-{site.directory.name}"
    path = site.directory / "a.txt"
    path.write_text(name)
    site.proxy.fail("upload_files", status(500), times=None)
    with pytest.raises(RpcError):
        site.open(retry=0.1).submit("uppercase", [Job("-n 1", {"in": path})], name=name)
    site.proxy.heal()
    assert site.project.submit("uppercase", [Job("-n 2", {"in": path})], name=name).njobs == 1


def test_jobs_that_the_project_refused_may_be_others_the_next_time(site):
    name = f"refused-{site.directory.name}"
    site.project.submit("uppercase", [replace(jobs("")[0], name=f"{name}_x")], name=f"{name}2")
    taken = [replace(jobs("")[0], name=f"{name}_x")]
    with pytest.raises(Exception, match="in use"):
        site.project.submit("uppercase", taken, name=name)
    batch = site.project.submit("uppercase", jobs("-n 2"), name=name)
    assert (batch.njobs, batch.existed) == (1, False)


def test_jobs_that_may_still_appear_are_not_replaced_by_others(site):
    name = f"hanging-{site.directory.name}"
    held = hang()
    site.proxy.fail("submit_batch", held)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(lambda: site.project.submit("uppercase", jobs("-n 1"), name=name))
        wait_for(lambda: site.proxy.count("submit_batch") == 1, "the jobs being sent")
        with pytest.raises(BatchConflict, match=r"a moment ago.* wait a minute and try again"):
            site.open().submit("uppercase", jobs("-n 2"), name=name)
        held.release()
        assert first.result(timeout=30).njobs == 1


def test_a_name_that_another_process_fills_meanwhile_with_other_jobs_is_refused(site, tmp_path):
    name = f"race-{site.directory.name}"
    (tmp_path / "in").write_text("x")
    winners = []

    def other(_):
        if not winners:
            winners.append(site.open().submit("uppercase", jobs("-n 2"), name=name))

    with pytest.raises(BatchConflict, match=f"arguments of job {name}_0;"):
        site.project.submit(
            "uppercase", [Job("-n 1", {"in": tmp_path / "in"})], name=name, progress=other
        )
    assert [each.id for each in site.project.batches() if each.name == name] == [winners[0].id]


def test_a_record_is_for_its_owner_alone_and_goes_with_its_batch(site):
    batch = site.project.submit("uppercase", jobs(""), name=f"gone-{site.directory.name}")
    (record,) = records(site)
    assert record.stat().st_mode & 0o777 == 0o600
    assert record.parent.stat().st_mode & 0o777 == 0o700
    batch.retire()
    assert records(site) == []


@pytest.mark.parametrize("trouble", ["for all to write", "a file"])
def test_where_nothing_can_be_written_down_jobs_are_submitted_all_the_same(site, trouble):
    name = f"{trouble.replace(' ', '-')}-{site.directory.name}"
    directory = site.directory / "state" / "submitted"
    directory.parent.mkdir()
    if trouble == "a file":
        directory.write_text("mine")
    else:
        directory.mkdir()
        directory.chmod(0o777)
    site.project.submit("uppercase", jobs("-n 1"), name=name)
    again = site.open().submit("uppercase", jobs("-n 2"), name=name)
    assert (again.existed, again.compared) == (True, False)


def test_a_damaged_record_is_none(site):
    name = f"damaged-{site.directory.name}"
    site.project.submit("uppercase", jobs("-n 1"), name=name)
    (record,) = records(site)
    record.write_bytes(record.read_bytes()[:-12])
    again = site.open().submit("uppercase", jobs("-n 2"), name=name)
    assert (again.existed, again.compared) == (True, False)


texts = st.text(max_size=5)
requests = st.builds(
    lambda found, priority: SubmitRequest(
        "b",
        "a",
        [
            (f"j{n}", Job(tuple(args), {"in": InlineFile(text)}, fpops=fpops))
            for n, (args, text, fpops) in enumerate(found)
        ],
        priority=priority,
    ),
    st.lists(
        st.tuples(st.lists(texts, max_size=2), texts, st.none() | st.floats(1, 1e12)), max_size=3
    ),
    st.none() | st.integers(-5, 5),
)


@given(requests, requests)
def test_two_requests_differ_exactly_if_something_in_them_does(one, other):
    assert (difference(describe(one, {}), describe(other, {})) == "") == (one == other)


def test_what_is_written_down_is_read_again(site):
    kept = Manifests(site.project.session)
    request = SubmitRequest(
        "b", "a", [("\udcff\n\t\"'é", Job(("\udcff\n\t", ""), {"in": InlineFile("\0")}))]
    )
    record = replace(describe(request, {}), batch_id=7)
    assert kept.write("b", record, new=True)
    assert kept.find("b") == record
    assert not kept.write("b", replace(record, batch_id=8), new=True)
    assert Manifests(site.elsewhere().session).find("b") is None
    assert Manifests(site.somebody_else().session).find("b") is None
