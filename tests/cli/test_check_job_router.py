"""What ``check`` says of the Job Router, with stand-ins for HTCondor's tools."""

import re
from pathlib import Path

import pytest

from boinc_gahp.htcondor import _boinc_attributes
from tests.cli.condor_tools import ROUTE, ROUTER, htcondor, job_router

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("log_stopped", "settings")]

CONF = Path(__file__).parents[2] / "conf"


@pytest.mark.usefixtures("condor")
def test_none_is_noted():
    [(level, text)] = job_router()
    assert level == "note"
    assert "conf/zz-boinc_gahp.router.conf" in text


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
    [(level, text)] = job_router()
    assert level == "FAILED"
    assert "route Boinc leads to BOINC, but is not in JOB_ROUTER_ROUTE_NAMES" in text
    assert "last set in /etc/condor/zzz.conf, line 3; add it there" in text
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
    (level, text), *_ = job_router()
    assert level == ("ok" if lets_in else "warning")
    if not lets_in:
        assert f"{name}, which is last set in /etc/condor/condor_config.local, line 9" in text
        assert "|| (WantBoinc =?= true) || (BoincApp isnt undefined)" in text


def test_a_transform_that_another_file_leaves_out_is_a_warning_that_names_that_file(condor):
    condor.set(**ROUTER)
    condor.last_set("JOB_TRANSFORM_NAMES", "Other", "/etc/condor/zzz.conf, line 4")
    level, text = job_router()[1]
    assert level == "warning"
    assert "the transform Boinc, which saves them, is not in JOB_TRANSFORM_NAMES" in text
    assert "/etc/condor/zzz.conf, line 4" in text


def test_a_route_that_htcondor_leaves_out_fails(condor):
    condor.set(**ROUTER)
    condor.accepts("Other")
    [(level, text)] = job_router()
    assert level == "FAILED"
    assert "drops route Boinc" in text
    assert "JobRouterLog" in text


def test_entries_are_a_thing_of_the_past(condor):
    entries = '[ GridResource = "batch boinc"; ]'
    condor.set(DAEMON_LIST="JOB_ROUTER", JOB_ROUTER_ENTRIES=entries)
    [(level, text)] = job_router()
    assert level == "FAILED"
    assert "write the route with JOB_ROUTER_ROUTE_NAMES" in text


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
    found = job_router()
    assert found[0] == ("ok", "Job Router: route Boinc leads to BOINC")
    assert found[1][0] == "warning"
    assert "loses transfer_output_remaps" in found[1][1]


def test_remaps_may_come_back_in_other_ways(condor):
    for line in (
        "COPY SavedOutputRemaps TransferOutputRemaps",
        'EVALSET TransferOutputRemaps SavedOutputRemaps ?: ""',
    ):
        route = ROUTE.replace("EVALSET", "#") + line
        condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": route}))
        assert len(job_router()) == 1


def test_a_route_that_passes_on_no_app_is_a_warning(condor):
    route = ROUTE.replace("COPY /^Boinc(.+)/ remote_Boinc\\1", "")
    condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": route}))
    assert [level for level, _ in job_router()] == ["ok", "warning"]
    assert "COPY /^Boinc(.+)/ remote_Boinc\\1" in job_router()[1][1]


def test_that_no_route_takes_jobs_that_bring_their_own_program_is_noted(condor):
    route = ROUTE.replace("WantBoinc =?= true || ", "")
    condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": route}))
    assert [level for level, _ in job_router()] == ["ok", "note"]
    assert "+WantBoinc = true" in job_router()[1][1]


def test_a_transform_for_attributes_that_is_in_no_list_is_a_warning(condor):
    condor.set(
        JOB_TRANSFORM_BoincAttributes="COPY ContainerImage remote_ContainerImage",
        EXTENDED_SUBMIT_COMMANDS='container_image = "image" docker_image = "image"',
    )
    condor.last_set("JOB_TRANSFORM_NAMES", "Other", "/etc/condor/zzz.conf, line 5")
    [told] = [text for level, text in htcondor() if "BoincAttributes" in text]
    assert "not in JOB_TRANSFORM_NAMES, which is last set in /etc/condor/zzz.conf, line 5" in told
    condor.set(JOB_TRANSFORM_NAMES="Other BoincAttributes")
    assert "EXTENDED_SUBMIT_COMMANDS" not in str(htcondor())
    condor.set(EXTENDED_SUBMIT_COMMANDS="project = true")
    [told] = [text for level, text in htcondor() if "EXTENDED_SUBMIT_COMMANDS" in text]
    assert "condor_submit drops container_image and docker_image from grid jobs" in told
    condor.set(EXTENDED_SUBMIT_COMMANDS='container_image = "image"')
    [told] = [text for level, text in htcondor() if "EXTENDED_SUBMIT_COMMANDS" in text]
    assert "condor_submit drops docker_image from grid jobs" in told
    condor.set(JOB_TRANSFORM_NAMES="Other")
    assert "EXTENDED_SUBMIT_COMMANDS" in str(htcondor())


def test_the_example_passes_on_every_attribute_that_boinc_gahp_reads():
    text = (CONF / "20-boinc_gahp.condor.conf").read_text()
    transform = text.split("JOB_TRANSFORM_BoincAttributes @=end\n")[1].split("@end")[0]
    copied = re.findall(r"^  COPY Boinc(\w+) remote_Boinc(\w+)$", transform, re.MULTILINE)
    assert [name for name, other in copied if name != other] == []
    assert set(_boinc_attributes.NAMES) <= {name for name, _ in copied}


def test_the_example_has_a_route_without_fault(condor):
    text = (CONF / "zz-boinc_gahp.router.conf").read_text()
    values = dict(ROUTER)
    for name in ("JOB_ROUTER_ROUTE_Boinc", "JOB_TRANSFORM_Boinc"):
        values[name] = text.split(f"{name} @=end\n")[1].split("@end")[0]
    condor.set(**values)
    assert job_router() == [("ok", "Job Router: route Boinc leads to BOINC")]
