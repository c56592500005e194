"""How soon HTCondor sees what has happened, with the intervals that ``conf/`` sets."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.htcondor.submit import grid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.htcondor.node import Node
    from tests.htcondor.pool import Pool

pytestmark = pytest.mark.timeout(300)

UPPERCASE = ("transfer_input_files = in", "transfer_output_files = out")

#: A program that ends at once, before it has said a word, when Bob's jobs first want it.
_DIES_ONCE = """#!/bin/sh
if [ "$(id -un)" = bob ] && mkdir /tmp/died 2>/dev/null; then exit 1; fi
exec /opt/boinc_gahp/bin/boinc_gahp
"""


@pytest.fixture
def shipped(pool: Pool) -> Iterator[None]:
    """HTCondor's own intervals, but for those that ``conf/`` sets; a program that dies once."""
    program = pool.root / "tmp" / "dies_once"
    program.write_text(_DIES_ONCE, "ascii")
    program.chmod(0o755)
    with suppress(FileNotFoundError):
        (pool.root / "tmp" / "died").rmdir()
    config_d = pool.root / "etc/condor/config.d"
    short, aside = config_d / "90-short.conf", pool.root / "tmp" / "90-short.conf"
    ours = config_d / "95-dies_once.conf"
    short.rename(aside)
    ours.write_text("BOINC_GAHP = /tmp/dies_once\n", "ascii")
    try:
        _take_settings(pool)
        yield
    finally:
        aside.rename(short)
        ours.unlink()
        _take_settings(pool)


def _take_settings(pool: Pool) -> None:
    pool.ask("root", "condor_reconfig")
    # Those of the users read them when they begin.
    pool.kill(r"^condor_gridmanager")


def test_a_jobs_end_and_a_daemon_that_died_at_once_are_seen_within_a_minute(
    node: Node, shipped: None
) -> None:
    text = grid("uppercase", *UPPERCASE)
    rooms = [node.pool.room(user, "soon", {"in": "soon\n"}) for user in ("alice", "bob")]
    clusters = [room.submit(text) for room in rooms]
    # With HTCondor's own, alice's took 126 s; bob's stood still for 300.
    for room, cluster in zip(rooms, clusters, strict=True):
        cluster.wait(timeout=100)
        assert room.read("out") == "SOON\n"
        # Submitted, run, ended; in between HTCondor's own words about the resource.
        assert [each for each in cluster.events("job.log") if each in {"000", "001", "005"}] == [
            "000",
            "001",
            "005",
        ]
    assert (node.pool.root / "tmp" / "died").is_dir()
