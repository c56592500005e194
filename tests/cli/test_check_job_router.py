"""What ``check`` says of the Job Router, with stand-ins for HTCondor's tools."""

import re
from pathlib import Path

import pytest

from boinc_gahp.htcondor.attributes import BOINC
from tests.cli.condor_tools import ROUTE, ROUTER, htcondor, job_router
from tests.cli.conftest import told

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("log_stopped", "settings")]

CONF = Path(__file__).parents[2] / "conf"

LOST = "loses transfer_output_remaps"
PASSED_ON = "COPY /^Boinc(.+)/ remote_Boinc\\1"


@pytest.mark.usefixtures("condor")
def test_none_is_noted():
    [point] = job_router()
    told(point, "note", "conf/zz-boinc_gahp.router.conf")


@pytest.mark.parametrize(
    ("name", "value", "level", "said"),
    [
        *(
            (name, "MASTER SCHEDD", "FAILED", "route to BOINC (Boinc), but no JOB_ROUTER in ")
            for name in ("DAEMON_LIST", "MASTER.DAEMON_LIST")
        ),
        ("JOB_ROUTER_ROUTE_NAMES", "Other", "FAILED", "route Boinc leads to BOINC, but is not in "),
        (
            "JOB_TRANSFORM_NAMES",
            "Other",
            "warning",
            "the transform Boinc, which saves them, is not",
        ),
        *(
            (
                "JOB_ROUTER_SOURCE_JOB_CONSTRAINT",
                constraint,
                "warning",
                "|| (WantBoinc =?= true) ||",
            )
            for constraint in (
                "(JobUniverse == 5) && (BoincApp isnt undefined)",
                "WantIt =?= true",
                'Owner == "alice"',
                "((",
            )
        ),
    ],
)
def test_what_another_file_sets_wrong_is_told_with_that_file(condor, name, value, level, said):
    condor.set(**ROUTER)
    condor.last_set(name, value, "/etc/condor/zzz.conf, line 7")
    [point] = [each for each in job_router() if each[0] != "ok"]
    told(point, level, said, f"{name}, which is last set in /etc/condor/zzz.conf, line 7")


def test_a_route_that_no_file_names_is_told(condor):
    condor.set(**ROUTER)
    condor.set(JOB_ROUTER_ROUTE_NAMES=None)
    assert "which no file sets" in job_router()[0][1]


@pytest.mark.parametrize(
    "constraint",
    ["true", "WantIt || (TARGET.JobUniverse == 5 && (WantBoinc || BoincApp isnt undefined))"],
)
def test_a_constraint_that_lets_jobs_in_is_well(condor, constraint):
    condor.set(**(ROUTER | {"JOB_ROUTER_SOURCE_JOB_CONSTRAINT": constraint}))
    told(job_router()[0], "ok")


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
    ("name", "value", "level", "said"),
    [
        ("ROUTER_ROUTE", ROUTE.replace("EVALSET", "# "), "warning", LOST),
        ("ROUTER_ROUTE", ROUTE.replace("SavedOutputRemaps", "Other"), "warning", LOST),
        ("TRANSFORM", "SET A 1", "warning", LOST),
        ("ROUTER_ROUTE", ROUTE.replace(PASSED_ON, ""), "warning", PASSED_ON),
        ("ROUTER_ROUTE", ROUTE.replace("WantBoinc =?= true || ", ""), "note", "+WantBoinc = true"),
    ],
    ids=["not put back", "put back from elsewhere", "not saved", "app", "own program"],
)
def test_what_a_route_loses_or_does_not_pass_on_or_take_is_told(condor, name, value, level, said):
    condor.set(**(ROUTER | {f"JOB_{name}_Boinc": value}))
    first, second = job_router()
    assert first == ("ok", "Job Router: route Boinc leads to BOINC")
    told(second, level, said)


def test_remaps_may_come_back_in_other_ways(condor):
    for line in (
        "COPY SavedOutputRemaps TransferOutputRemaps",
        'EVALSET TransferOutputRemaps SavedOutputRemaps ?: ""',
    ):
        route = ROUTE.replace("EVALSET", "#") + line
        condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": route}))
        assert len(job_router()) == 1


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
