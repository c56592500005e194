"""Inputs that the project does not take: a real web server hands them out, by HTCondor and people.

The project has PHP's limit of 2 MiB. The web server has no rights of its own, as Debian sets it up.
"""

import hashlib
import os

import pytest

from tests.containers_engine import IMAGE
from tests.helpers import wait_for
from tests.real_htcondor.node import CONTAINERS, write_private
from tests.webserver import nginx

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

USER = "alice"
PROGRAM = "/opt/boinc_gahp/bin/boinc_gahp"
FIT = "#!/bin/sh\nmd5sum <big >sum\nexit\n"
PIECE = 1 << 20


@pytest.fixture
def public(node, tmp_path):
    """The directory that nginx hands out, in which a user's files are put."""
    directory = node.pool.root / "srv/inputs"
    directory.mkdir(mode=0o755, exist_ok=True)
    directory.chmod(0o1777)
    own = tmp_path / "nginx"
    own.mkdir()
    with nginx(directory, own) as address:
        text = f'[projects.{CONTAINERS}]\npublish_directory = "/srv/inputs"\n'
        write_private(node.pool, USER, "boinc_gahp.toml", f'{text}publish_url = "{address}"\n')
        yield directory / USER
    (node.pool.root / f"home/{USER}/.config/boinc_gahp/boinc_gahp.toml").unlink()


def sizes(public):
    return sorted(path.stat().st_size for path in public.glob("??/*"))


def test_an_input_of_300_mb_and_a_program_of_40_mb_come_to_volunteers_and_go(
    node, volunteers, public
):
    room = node.pool.room(USER, "large", {"fit.sh": FIT + "#" * 40_000_000})
    (room.directory / "fit.sh").chmod(0o755)
    digest = hashlib.md5()
    with (room.directory / "big").open("wb") as file:
        for _ in range(300):
            piece = os.urandom(PIECE)
            digest.update(piece)
            file.write(piece)
    room.give()
    wanted = f"{digest.hexdigest()}  -\n"
    sent = [room.directory.joinpath(name).stat().st_size for name in ("fit.sh", "big")]
    # By HTCondor.
    cluster = room.submit(
        f"universe = grid\ngrid_resource = batch boinc\ncontainer_image = docker://{IMAGE}\n"
        f'+BoincProject = "{CONTAINERS}"\nexecutable = fit.sh\ntransfer_input_files = big\n'
        "transfer_output_files = sum\nlog = job.log\nrequest_disk = 2GB\nqueue\n"
    )
    wait_for(lambda: sizes(public) == sent, "the files are public", 120)
    [job] = cluster.wait(timeout=300)
    assert (job["ExitCode"], room.read("sum")) == (0, wanted)
    wait_for(lambda: not sizes(public), "nothing is public any more", 60)
    # By people.
    command = (PROGRAM, "batch")
    of = ("--project", CONTAINERS)
    run = (*command, "run", *of, "--name", "large", "--image", IMAGE, "--input", "big")
    told = room.ask(*run, "--output", "sum", "--wait", "--", "./fit.sh", timeout=300)
    assert "Public as long as a job needs them (355 MB): " in told
    assert sizes(public) == sent
    room.ask(*command, "fetch", "large", "results", *of, timeout=100)
    assert room.read("results/large_0/sum") == wanted
    room.ask(*command, "retire", "large", *of)
    assert sizes(public) == []
    check = node.pool.run(USER, PROGRAM, "check", *of)
    assert "published files: everybody gets what is put at http://127.0.0.1:" in check.stdout
