"""What ``check`` says of the Job Router, with stand-ins for HTCondor's tools."""

import re
from pathlib import Path

import pytest

from boinc_gahp.htcondor.attributes import BOINC
from tests.cli.condor_tools import ROUTE, ROUTER, htcondor, job_router
from tests.cli.conftest import told

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("log_stopped", "settings")]

CONF = Path(__file__).parents[2] / "conf"


@pytest.mark.usefixtures("condor")
def test_none_is_noted():
    [point] = job_router()
    told(point, "note", "conf/zz-boinc_gahp.router.conf")


@pytest.mark.parametrize("name", ["DAEMON_LIST", "MASTER.DAEMON_LIST"])
def test_one_that_does_not_run_fails_and_names_the_file_to_mend(condor, name):
    condor.set(**ROUTER)
    condor.last_set(name, "MASTER SCHEDD", "/etc/condor/condor_config.local, line 7")
    assert job_router()[0] == (
        "FAILED",
        "Job Router: there is a route to BOINC (Boinc), but no JOB_ROUTER in "
        f"{name}, which is last set in /etc/condor/condor_config.local, line 7; add it there, "
        "and run condor_reconfig",
    )


def test_a_route_that_another_file_leaves_out_fails_and_names_that_file(condor):
    condor.set(**ROUTER)
    condor.last_set("JOB_ROUTER_ROUTE_NAMES", "Other", "/etc/condor/zzz.conf, line 3")
    [point] = job_router()
    said = "route Boinc leads to BOINC, but is not in JOB_ROUTER_ROUTE_NAMES"
    told(point, "FAILED", said, "last set in /etc/condor/zzz.conf, line 3; add it there")
    condor.set(JOB_ROUTER_ROUTE_NAMES=None)
    assert "which no file sets" in job_router()[0][1]


@pytest.mark.parametrize(
    ("constraint", "lets_in"),
    [
        ("true", True),
        ("WantIt || (TARGET.JobUniverse == 5 && (WantBoinc || BoincApp isnt undefined))", True),
        ("(JobUniverse == 5) && (BoincApp isnt undefined)", False),
        ("WantIt =?= true", False),
        ('Owner == "alice"', False),
        ("((", False),
    ],
)
def test_a_constraint_that_keeps_jobs_from_the_route_is_a_warning_that_names_its_file(
    condor, constraint, lets_in
):
    condor.set(**ROUTER)
    name = "JOB_ROUTER_SOURCE_JOB_CONSTRAINT"
    condor.last_set(name, constraint, "/etc/condor/condor_config.local, line 9")
    place = f"{name}, which is last set in /etc/condor/condor_config.local, line 9"
    said = (place, "|| (WantBoinc =?= true) || (BoincApp isnt undefined)")
    told(job_router()[0], *(("ok",) if lets_in else ("warning", *said)))


def test_a_transform_that_another_file_leaves_out_is_a_warning_that_names_that_file(condor):
    condor.set(**ROUTER)
    condor.last_set("JOB_TRANSFORM_NAMES", "Other", "/etc/condor/zzz.conf, line 4")
    said = "the transform Boinc, which saves them, is not in JOB_TRANSFORM_NAMES"
    told(job_router()[1], "warning", said, "/etc/condor/zzz.conf, line 4")


def test_a_route_that_htcondor_leaves_out_fails(condor):
    condor.set(**ROUTER)
    condor.accepts("Other")
    [point] = job_router()
    told(point, "FAILED", "drops route Boinc", "JobRouterLog")


def test_entries_are_a_thing_of_the_past(condor):
    entries = '[ GridResource = "batch boinc"; ]'
    condor.set(DAEMON_LIST="JOB_ROUTER", JOB_ROUTER_ENTRIES=entries)
    [point] = job_router()
    told(point, "FAILED", "write the route with JOB_ROUTER_ROUTE_NAMES")


@pytest.mark.parametrize(
    "change",
    [
        {"JOB_ROUTER_ROUTE_Boinc": ROUTE.replace("EVALSET", "# ")},
        {"JOB_ROUTER_ROUTE_Boinc": ROUTE.replace("SavedOutputRemaps", "Other")},
        {"JOB_TRANSFORM_NAMES": "None"},
        {"JOB_TRANSFORM_Boinc": "SET A 1"},
    ],
    ids=["not-put-back", "put-back-from-elsewhere", "no-transform", "not-saved"],
)
def test_remaps_that_would_be_lost_are_a_warning(condor, change):
    condor.set(**(ROUTER | change))
    first, second, *_ = job_router()
    assert first == ("ok", "Job Router: route Boinc leads to BOINC")
    told(second, "warning", "loses transfer_output_remaps")


def test_remaps_may_come_back_in_other_ways(condor):
    for line in (
        "COPY SavedOutputRemaps TransferOutputRemaps",
        'EVALSET TransferOutputRemaps SavedOutputRemaps ?: ""',
    ):
        route = ROUTE.replace("EVALSET", "#") + line
        condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": route}))
        assert len(job_router()) == 1


@pytest.mark.parametrize(
    ("line", "level", "said"),
    [
        ("COPY /^Boinc(.+)/ remote_Boinc\\1", "warning", "COPY /^Boinc(.+)/ remote_Boinc\\1"),
        ("WantBoinc =?= true || ", "note", "+WantBoinc = true"),
    ],
    ids=["app", "own program"],
)
def test_what_a_route_does_not_pass_on_or_take_is_told(condor, line, level, said):
    condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": ROUTE.replace(line, "")}))
    first, second = job_router()
    assert first[0] == "ok"
    told(second, level, said)


def test_a_transform_for_attributes_that_is_in_no_list_is_a_warning(condor):
    condor.set(
        JOB_TRANSFORM_BoincAttributes="COPY ContainerImage remote_ContainerImage",
        EXTENDED_SUBMIT_COMMANDS='container_image = "image" docker_image = "image"',
    )
    condor.last_set("JOB_TRANSFORM_NAMES", "Other", "/etc/condor/zzz.conf, line 5")
    [said] = [text for level, text in htcondor() if "BoincAttributes" in text]
    assert "not in JOB_TRANSFORM_NAMES, which is last set in /etc/condor/zzz.conf, line 5" in said
    condor.set(JOB_TRANSFORM_NAMES="Other BoincAttributes")
    assert "EXTENDED_SUBMIT_COMMANDS" not in str(htcondor())
    for given, dropped in (
        ("project = true", "container_image and docker_image"),
        ('container_image = "image"', "docker_image"),
    ):
        condor.set(EXTENDED_SUBMIT_COMMANDS=given)
        [said] = [text for level, text in htcondor() if "EXTENDED_SUBMIT_COMMANDS" in text]
        assert f"condor_submit drops {dropped} from grid jobs" in said
    condor.set(JOB_TRANSFORM_NAMES="Other")
    assert "EXTENDED_SUBMIT_COMMANDS" in str(htcondor())


def test_the_example_passes_on_every_attribute_that_boinc_gahp_reads():
    text = (CONF / "20-boinc_gahp.condor.conf").read_text()
    transform = text.split("JOB_TRANSFORM_BoincAttributes @=end\n")[1].split("@end")[0]
    copied = re.findall(r"^  COPY Boinc(\w+) remote_Boinc(\w+)$", transform, re.MULTILINE)
    assert [name for name, other in copied if name != other] == []
    assert set(BOINC) <= {name for name, _ in copied}


def test_the_example_has_a_route_without_fault(condor):
    text = (CONF / "zz-boinc_gahp.router.conf").read_text()
    values = dict(ROUTER)
    for name in ("JOB_ROUTER_ROUTE_Boinc", "JOB_TRANSFORM_Boinc"):
        values[name] = text.split(f"{name} @=end\n")[1].split("@end")[0]
    condor.set(**values)
    assert job_router() == [("ok", "Job Router: route Boinc leads to BOINC")]
