"""Jobs that bring their own program, from an ad to the outputs, in real containers."""

from dataclasses import replace

import pytest

from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.containers_engine import IMAGE
from tests.helpers import wait_for
from tests.htcondor.helpers import await_state, await_status, row_of
from tests.localproject.in_containers import APP

pytestmark = [pytest.mark.long, pytest.mark.containers]

_COMPLETED, _HELD = 4, 5


@pytest.fixture(scope="module")
def local_project(engine, tmp_path_factory):
    """A project as a real server, with volunteers that have an engine."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=2, php=STOCK) as project:
        project.add_container_app(APP)
        yield project


@pytest.fixture
def node(site):
    """A submit node whose settings name the app for containers."""
    site.container_app = APP
    return site


@pytest.fixture
def service(node):
    with node.service() as service:
        yield service


def job(node, program, **attributes):
    """Return a job with a program of its own, a shell script."""
    usual = dict.fromkeys(["BoincApp", "TransferInput"], "undefined")
    usual |= {"BoincImage": f'"{IMAGE}"', "TransferExecutable": "true", "TransferOutput": '""'}
    made = node.job(**(usual | attributes))
    path = made.iwd / "fit.sh"
    path.write_text(f"#!/bin/sh\n{program}\n")
    return replace(made, ad=made.ad.replace('"/usr/bin/uppercase"', f'"{path}"'))


def done(service, *jobs):
    """Submit jobs and wait until they are completed; return their status ads."""
    ids = [service.submit(each.ad) for each in jobs]
    await_status(service, ids, _COMPLETED)
    return [service.status(each)[1] for each in ids]


def held(service, each):
    """Submit a job and wait until it is held; return its status ad."""
    job_id = service.submit(each.ad)
    await_status(service, [job_id], _HELD)
    return service.status(job_id)[1]


HARD = ["two words", "it's", "$HOME", "`id`", "\\", 'a"b', "*", "<&>", "ü"]


def v2(words):
    """Return words in HTCondor's V2 syntax, as a ClassAd string."""
    text = " ".join("'{}'".format(word.replace("'", "''")) for word in words)
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def test_words_and_variables_with_hard_characters_arrive(node, service):
    each = job(
        node,
        'printf "%s\\n" "$@" "$A"; cat >&2',
        Arguments=v2(HARD),
        Environment=v2(["A=" + " ".join(HARD)]),
        In='"in"',
    )
    [ad] = done(service, each)
    assert "ExitCode = 0" in ad
    wanted = "\n".join([*HARD, " ".join(HARD)]) + "\n"
    assert (each.iwd / "job.out").read_text() == wanted
    assert (each.iwd / "job.err").read_bytes() == (each.iwd / "in").read_bytes()


def test_directories_go_in_and_out_and_remaps_apply(node, service):
    each = job(
        node,
        "cp -r model plots; echo 1 >result; mkdir -p deep/er; echo 2 >deep/er/x",
        TransferInput='"model"',
        TransferOutput='"result, plots, deep/er"',
        TransferOutputRemaps='"plots=pictures;result=other"',
    )
    (each.iwd / "model" / "sub").mkdir(parents=True)
    (each.iwd / "model" / "sub" / "w").write_text("weights")
    done(service, each)
    assert (each.iwd / "pictures" / "sub" / "w").read_text() == "weights"
    assert (each.iwd / "other").read_text() == "1\n"
    assert (each.iwd / "er" / "x").read_text() == "2\n"
    assert not (each.iwd / "result").exists()
    assert not (each.iwd / "_exit").exists()


def test_exit_statuses_and_signals_reach_htcondor(node, service):
    ads = done(
        service, *(job(node, ends) for ends in ("exit 3", "kill -9 $$", "kill -SEGV $$"))
    )  # fmt: skip
    assert "ExitCode = 3; ExitBySignal = false" in ads[0]
    assert "ExitSignal = 9; ExitBySignal = true" in ads[1]
    assert "ExitSignal = 11; ExitBySignal = true" in ads[2]


#: What a job does and asks for, and what its status ad says when it is held for that.
HELD = {
    "a failure that it wants to be held for": (
        "exit 3",
        {"BoincFailedJobs": '"hold"'},
        ["the program ended with exit status 3", "HoldReasonCode = 2304; HoldReasonSubCode = 3"],
    ),
    "a missing output": (
        "echo 1 >here",
        {"TransferOutput": '"here, result.json"'},
        ["did not make", "result.json", "HoldReasonCode = 2305"],
    ),
    "a program that the image lacks": (
        "",
        {"TransferExecutable": "false", "Cmd": '"/opt/none/fit"'},
        ["the image has no program '/opt/none/fit'", "HoldReasonCode = 2304"],
    ),
    "an image that nobody can get": (
        "true",
        {"BoincImage": '"localhost/no-such-image"'},
        [
            r"not of the program: its image \"localhost/no-such-image\" could not be pulled",
            "check the image: that its name is right, that everybody may pull it",
            "HoldReasonCode = 2304",
        ],
    ),
    "no computer that could take it": (
        "true",
        {"RequestMemory": "100000000"},
        ["no volunteer could take it; request less memory and disk"],
    ),
    "too much disk": (
        "head -c 20000000 /dev/zero >big; sleep 60",
        {"RequestDisk": "3000", "TransferOutput": '"big"'},
        ["exit status 196: it used more disk than allowed", "request_disk"],
    ),
}


@pytest.mark.parametrize("why", HELD)
def test_a_job_is_held_with_the_reason(node, service, why):
    program, attributes, words = HELD[why]
    ad = held(service, job(node, program, **attributes))
    for each in words:
        assert each in ad
    assert ("could not be pulled" in ad) == (why == "an image that nobody can get")


@pytest.mark.parametrize("source", ["oci-archive", "rootfs"])
def test_a_file_that_is_no_such_image_holds_its_job_with_the_kind_that_is_needed(
    node, service, engine, source
):
    path = engine.root_file_system() if source == "oci-archive" else engine.archive()
    ad = held(service, job(node, "true", BoincImage=f'"{source}:{path}"'))
    needed = "--format oci-archive" if source == "oci-archive" else "all files of a system"
    assert f"{source}:{path}" in ad
    assert needed in ad
    assert "everybody may pull it" not in ad


@pytest.mark.parametrize("source", ["oci-archive", "rootfs"])
def test_an_image_in_a_file_travels_with_the_job(node, service, engine, source):
    path = engine.archive() if source == "oci-archive" else engine.root_file_system()
    each = job(node, "echo runs", BoincImage=f'"{source}:{path}"')
    done(service, each)
    assert (each.iwd / "job.out").read_text() == "runs\n"


def test_a_cancelled_job_has_no_container_left(node, service, engine):
    job_id = service.submit(job(node, "sleep 600").ad)
    with node.jobs() as jobs:
        await_state(jobs, job_id, "running")
        name = str(row_of(jobs, job_id).job_name)
    wait_for(lambda: any(name in each for each in engine.containers()), "the container")
    service.cancel(job_id)
    wait_for(lambda: not any(name in each for each in engine.containers()), "no container")
