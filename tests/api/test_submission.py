"""Jobs are submitted once, looked at beforehand, and estimated."""

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.request import build_request, job_names, new_batch_name
from boinc_gahp.errors import (
    BadRequest,
    BatchConflict,
    BatchTooLarge,
    JobRefused,
    NameInUse,
    NotFound,
    PermissionDenied,
    RpcError,
)
from boinc_gahp.submit.checks import check_batch_name, check_job_name
from boinc_gahp.submit.types import InlineFile, Job, LocalFile, Parameters, RemoteFile, StagedFile
from tests.api.conftest import REFUSED
from tests.faultproxy import status

URL = "http://h/file"
MD5 = "0" * 31 + "1"


@pytest.fixture
def data(tmp_path):
    """Three small files, two of them alike."""
    paths = [tmp_path / f"in {n}.txt" for n in range(3)]
    for number, path in enumerate(paths):
        path.write_text(("other" if number == 1 else "") + str(tmp_path))
    return paths


def jobs_of(data, count=6):
    return [Job(args=f"-n {n}", inputs={"in": data[n % len(data)]}) for n in range(count)]


# -- submit


def test_a_submit_that_failed_goes_on_with_the_same_name(site, data):
    site.proxy.fail("query_files", status(500), times=None)
    with pytest.raises(RpcError):
        site.submit(jobs_of(data), project=site.open(retry=0.1))
    site.proxy.heal()
    batch = site.submit(jobs_of(data))
    assert (batch.name, batch.njobs) == (site.name, 6)
    assert site.project.batches() == (batch,)


def test_parameters_reach_the_project_and_a_jobs_own_win(site, data):
    needs = Parameters(1e12, "200T", "0.5GB", 3e9, "2h")
    (plain,) = jobs_of(data, 1)
    own = {"fpops": "5T", "memory": "600MB", "disk": 2e9, "delay": "3h", "priority": 7}
    jobs = [plain, replace(plain, **own)]
    batch = site.submit(jobs, parameters=needs, priority=3, app_version_num=1, lease="30d")
    stored = site.rows(
        "SELECT rsc_fpops_est, rsc_fpops_bound, rsc_memory_bound, rsc_disk_bound, delay_bound, "
        "priority, app_version_num FROM workunit WHERE batch = ? ORDER BY id",
        batch.id,
    )
    assert stored == [(1e12, 2e14, 5e8, 3e9, 7200, 3, 1), (5e12, 2e14, 6e8, 2e9, 10800, 7, 1)]
    assert batch.expire_time - batch.create_time == pytest.approx(30 * 86400, abs=60)


def test_a_name_in_use_leaves_no_batch_and_the_batchs_name_free(site, data):
    jobs = [replace(job, name=f"{site.name}-{n}") for n, job in enumerate(jobs_of(data, 3))]
    site.submit(jobs)
    with pytest.raises(NameInUse) as caught:
        site.submit(jobs[:1], name=f"{site.name}-2")
    assert caught.value.job_name == f"{site.name}-0"
    assert list(site.plan(jobs[:1], name=f"{site.name}-2").problems) == [f"{site.name}-0"]
    assert site.submit(jobs_of(data, 1), name=f"{site.name}-2").njobs == 1


def test_a_name_in_use_that_the_project_notices_retires_the_batch(site, data):
    jobs = [replace(job, name=f"{site.name}-{n}") for n, job in enumerate(jobs_of(data, 3))]
    first = site.submit(jobs[1:2])
    with pytest.raises(NameInUse):
        site.submit(jobs, name=f"{site.name}-2")
    assert site.project.batches() == (first,)
    with pytest.raises(BatchConflict, match="RETIRED"):
        site.submit(jobs, name=f"{site.name}-2")


def test_a_submit_that_fails_for_good_leaves_no_batch_of_a_name_that_was_made_up(site, data):
    site.proxy.fail("submit_batch", REFUSED, times=None)
    with pytest.raises(PermissionDenied):
        site.project.submit("uppercase", jobs_of(data))
    assert site.proxy.count("create_batch") == 1
    assert site.project.batches() == ()


def test_an_app_that_is_not_there_is_reported_with_what_could_be_meant(site, data):
    with pytest.raises(NotFound, match="app not found: uppercse; ask the project's admin"):
        site.project.app("uppercse")
    site.submit(jobs_of(data, 1))
    for act in (site.project.submit, site.project.plan, site.project.estimate):
        with pytest.raises(NotFound, match=r"uppercse; did you mean uppercase\?"):
            act("uppercse", jobs_of(data, 1))
    with pytest.raises(NotFound, match="xyz; your batches use uppercase"):
        site.project.app("xyz")


def test_too_many_jobs_are_told_how_many_fit(site, data):
    project = site.open(max_post_bytes=20_000)
    jobs = jobs_of(data, 300)
    with pytest.raises(BatchTooLarge) as caught:
        project.submit("uppercase", jobs, name="toolarge")
    plan = project.plan("uppercase", jobs, name="toolarge")
    assert str(plan.refusal) == str(caught.value)
    numbers = r"; (\d+) of these 300 jobs fit .* make (\d+) batches of (\d+) jobs"
    found = re.search(numbers, str(caught.value))
    assert found
    fits, batches, each = map(int, found.groups())
    assert plan.jobs_that_fit == fits
    assert (batches - 1) * each < 300 <= batches * each <= batches * fits
    assert project.plan("uppercase", jobs[:fits], name="toolarge").is_good
    assert not project.plan("uppercase", jobs[: fits + 1], name="toolarge").is_good


# -- plan and estimate


def test_a_plan_tells_which_files_would_be_sent(site, data):
    jobs = [*jobs_of(data), Job(inputs={"in": RemoteFile(URL, 5, MD5)})]
    plan = site.plan(jobs)
    size = data[0].stat().st_size
    assert plan.is_good
    assert [(file.path, file.nbytes, file.present) for file in plan.files] == [
        (str(data[0]), size, False),
        (str(data[1]), size + 5, False),
    ]
    assert (plan.nbytes, plan.jobs_that_fit) == (2 * size + 5, 7)
    assert plan.request_bytes < plan.max_request_bytes
    site.submit(jobs[:1], name="other")
    after = site.plan(jobs)
    assert [file.present for file in after.files] == [True, False]
    assert repr(after).endswith(f"7 jobs, {size + 5} bytes to be sent, good>")
    assert site.proxy.count("submit_batch") == 1


def test_a_plan_tells_the_sizes_of_jobs_unless_their_template_is_on_the_project(site, data):
    plain, other = jobs_of(data, 2)
    jobs = [replace(plain, memory="1GB"), replace(other, memory="2GB")]
    assert site.plan(jobs).sizes["memory_bound"] == (1e9, 2e9)
    assert site.plan([plain], input_template_filename="uppercase_in").sizes == {}


def test_a_plan_tells_jobs_whose_files_are_not_on_the_project(site, data):
    # The project refuses a question with the second name in it as a whole.
    jobs = [Job(inputs={"in": StagedFile(name)}) for name in ("nothing.dat", "../x")]
    plan = site.plan([*jobs_of(data, 1), *jobs], name="wrong")
    assert list(plan.problems) == ["wrong_1", "wrong_2"]
    assert "has no file 'nothing.dat'" in str(plan.problems["wrong_1"])


def test_a_plan_refuses_what_a_batch_cannot_be(site, data):
    assert "has no jobs" in str(site.plan([]).refusal)
    assert "holds a '" in str(site.plan(jobs_of(data), name="it's").refusal)


def test_an_app_tells_its_inputs_and_outputs(site):
    app = site.project.app("uppercase")
    assert [file.open_name for file in app.inputs] == ["in"]
    assert [file.open_name for file in app.outputs] == ["out"]
    assert repr(app) == "<App 'uppercase' inputs: in; outputs: out>"


# -- requests


def request_of(*jobs, **more):
    request = build_request("app", jobs, name="b", **more)
    return [(name, tuple(job.args)) for name, job in request.jobs]


def test_arguments_are_words_or_are_split_as_a_shell_would():
    jobs = [Job("-a 'b c'"), Job(("-a", "b c")), Job(("-n", 5, 0.5, Path("x/y")))]
    assert [args for _, args in request_of(*jobs)] == [
        ("-a", "b c"),
        ("-a", "b c"),
        ("-n", "5", "0.5", "x/y"),
    ]


@pytest.mark.parametrize(
    ("jobs", "more", "said"),
    [
        (Job(), {}, "jobs is one Job"),
        (["a"], {}, r"jobs\[0\] is a str"),
        ([Job("a 'b")], {}, "job 'b_0': arguments .* a quote is not closed"),
        ([Job((None,))], {}, "the argument None is a NoneType"),  # type: ignore[arg-type]
        ([Job((True,))], {}, "the argument True is a bool"),  # type: ignore[arg-type]
        ([Job(inputs={"in": 5})], {}, "input 'in' is a int"),
        ([Job(name=5)], {}, "a job's name is a int"),  # type: ignore[arg-type]
        (5, {}, "jobs is a int: expected a list of boinc_gahp.Job"),
        ("rows.csv", {}, r"jobs is a path: expected a list, so write jobs_from\('rows.csv'\)"),
        ([{"n": 1}], {}, "expected a boinc_gahp.Job; jobs_from makes jobs of rows"),
        ([Job(inputs=["a.txt"])], {}, "job 'b_0': inputs is a list: expected files by name"),  # type: ignore[arg-type]
        ([Job(inputs={5: "a.txt"})], {}, "input 5: name is a int: expected a string"),
        ([Job(inputs={"in": InlineFile(b"x")})], {}, "job 'b_0': input 'in': text is a bytes"),  # type: ignore[arg-type]
        ([Job(inputs={"in": StagedFile(None)})], {}, "physical_name is a NoneType"),  # type: ignore[arg-type]
        ([Job(args=5)], {}, "job 'b_0': args is a int: expected words, or one string"),  # type: ignore[arg-type]
        ([Job(memory=2)], {}, "job 'b_0': memory: 2 bytes of memory: did you mean 2MB or 2GB"),
        ([Job(parameters=[1])], {}, "job 'b_0': parameters is a list: expected values by name"),  # type: ignore[arg-type]
        ([Job(priority=0.5)], {}, "job 'b_0': priority is 0.5: expected a whole number"),  # type: ignore[arg-type]
        ([Job(input_template=Path("x"))], {}, "input_template is a PosixPath"),  # type: ignore[arg-type]
        ([Job()], {"priority": "high"}, "priority is 'high': expected a whole number"),
        ([Job()], {"output_template_filename": 5}, "output_template_filename is a int"),
        ([Job()], {"parameters": {"fpops_est": 1}}, "parameters is a dict: expected boinc_gahp.P"),
        (
            [Job()],
            {"parameters": Parameters(memory_bound=float("nan"))},
            "memory_bound: nan is not a size",
        ),
    ],
)
def test_what_is_no_job_is_told_by_its_place(jobs, more, said):
    with pytest.raises((BadRequest, JobRefused), match=said):
        build_request("app", jobs, name="b", **more)


def test_numbers_of_other_libraries_are_plain_ones_in_a_request():
    jobs = [Job(args=[np.float64(0.5)], fpops=np.float64(2e12))]
    request = build_request("app", jobs, parameters=Parameters(np.float64(1e12)))
    ((_, job),) = request.jobs
    assert job.args == ("0.5",)
    assert (repr(job.fpops), repr(request.parameters.fpops_est)) == (
        "2000000000000.0",
        "1000000000000.0",
    )


def test_paths_of_bytes_are_kept(tmp_path):
    odd = os.fsdecode(b"in\xff.txt")
    request = build_request("app", [Job(inputs={"in": odd})])
    assert [job.files for _, job in request.jobs] == [{"in": LocalFile(odd)}]


@given(
    st.text(st.sampled_from("aB é/_."), min_size=1, max_size=12).filter(
        lambda name: name == name.strip() and name != "0"
    ),
    st.integers(1, 120),
)
def test_names_of_jobs_are_derived_so_that_the_project_takes_them(name, count):
    check_batch_name(name)
    names = job_names(name, [Job()] * count)
    assert names == sorted(names)
    assert len(set(names)) == count
    assert names == job_names(name, [Job()] * count)
    seen = {}
    for each in names:
        check_job_name(each, seen)


def test_names_that_are_given_stay_and_count():
    assert job_names("b", [Job(), Job(name="x"), *[Job()] * 9])[:3] == ["b_00", "x", "b_02"]


def test_a_batch_without_a_name_gets_one_of_its_own():
    name = new_batch_name("uppercase")
    assert re.fullmatch(r"uppercase-\d{8}-\d{6}-[a-z]{4}", name)


def test_a_keyword_that_there_is_not_is_named():
    # by_name is one of the request's own.
    for wrong in ("nmae", "by_name"):
        with pytest.raises(TypeError, match=rf"submit\(\) got .* keyword argument '{wrong}'"):
            build_request("app", [Job()], **{wrong: True})
