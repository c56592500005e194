"""A project that hangs, trickles or floods wants to keep a user's other projects from being served.

Both are one local project: straight, and through a proxy that misbehaves. To a daemon, two
addresses are two projects.
"""

from pathlib import Path

import psutil
import pytest

from boinc_gahp.config.settings import LimitSettings
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.states import HTCondorState
from tests import faultproxy
from tests.cli.conftest import COMMAND
from tests.daemon.gridmanager import Gridmanager, submission
from tests.daemon.home import Node
from tests.daemon.process import Daemon
from tests.faultproxy import FaultProxy
from tests.helpers import wait_for
from tests.inside import unfinished_jobs, workunit_names

pytestmark = pytest.mark.long

BATCH = "neighbours#1"
JOBS = [f"{BATCH}#1.{number}" for number in range(6)]
#: More than one project may have at work, by any of the settings.
MANY = LimitSettings().workers + LimitSettings().control_workers


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=2) as project:
        yield project


class Neighbours:
    """One daemon on pipes, and two addresses for it."""

    def __init__(self, daemon, project, proxy):
        self.daemon = daemon
        self.gridmanager = Gridmanager(daemon)
        self.process = psutil.Process(daemon.process.pid)
        self._authenticator = project.authenticator
        self._urls = {"healthy": project.url, "hostile": proxy.url}
        self.proxy = proxy

    def select(self, which):
        words = ["BOINC_SELECT_PROJECT", self._urls[which], self._authenticator]
        assert self.gridmanager.say(words) == ["S"]

    def begin_fetch(self, job, directory):
        directory.mkdir(parents=True)
        return self.gridmanager.begin(
            "BOINC_FETCH_OUTPUT", job, str(directory), "job.err", "ALL", "0"
        )

    def check_healthy_is_served(self, room):
        """Ask, submit to and fetch from the healthy one: all is answered (``Daemon.line``)."""
        self.select("healthy")
        assert self.gridmanager.do("BOINC_PING") == ["NULL"]
        answer = self.gridmanager.do("BOINC_QUERY_BATCHES", "0", "1", BATCH)
        assert answer[0] == "NULL"
        assert sorted(answer[3::2]) == JOBS
        batch = f"after-{room.parent.name}"
        words = submission(batch, "uppercase", {f"{batch}.0": ([], [__file__, "in"])})
        assert self.gridmanager.do("BOINC_SUBMIT", *words) == ["NULL"]
        fetches = [self.begin_fetch(job, room / job) for job in JOBS]
        for job, fetch in zip(JOBS, fetches, strict=True):
            assert self.gridmanager.result(fetch)[:2] == ["NULL", "0"]
            assert (room / job / "out").read_text() == f"TEXT {job}".upper()


@pytest.fixture
def neighbours(project, tmp_path):
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    with (
        FaultProxy(project.url) as proxy,
        Daemon([COMMAND], environ=environ, cwd=Path("/")) as daemon,
    ):
        neighbours = Neighbours(daemon, project, proxy)
        neighbours.select("healthy")
        if BATCH not in str(workunit_names(project)):
            jobs = {}
            for job in JOBS:
                path = tmp_path / job
                path.write_text(f"text {job}")
                jobs[job] = ([], [str(path), "in"])
            words = submission(BATCH, "uppercase", jobs)
            assert neighbours.gridmanager.do("BOINC_SUBMIT", *words) == ["NULL"]
        wait_for(lambda: unfinished_jobs(project) == 0, "the jobs' end")
        yield neighbours


def test_outputs_that_trickle_do_not_keep_a_neighbours_jobs_from_coming_home(neighbours, tmp_path):
    proxy = neighbours.proxy
    # A reply of some hundred bytes takes minutes.
    proxy.fail("result_file", faultproxy.drip(1.0), times=None)
    before = neighbours.process.memory_info().rss
    neighbours.select("hostile")
    for number in range(MANY):
        neighbours.begin_fetch(JOBS[number % len(JOBS)], tmp_path / "hostile" / str(number))
    wait_for(lambda: proxy.count("result_file") >= 16, "outputs that trickle")
    neighbours.check_healthy_is_served(tmp_path / "healthy")
    assert neighbours.process.num_threads() < MANY + 20
    assert neighbours.process.memory_info().rss < before + 100_000_000


def test_requests_that_hang_do_not_keep_a_neighbour_from_being_asked(neighbours, tmp_path):
    proxy = neighbours.proxy
    proxy.fail("*", faultproxy.hang(), times=None)
    neighbours.select("hostile")
    ids = [
        neighbours.gridmanager.begin("BOINC_QUERY_BATCHES", "0", "1", f"hung {number}")
        for number in range(MANY // 2)
    ]
    ids += [neighbours.gridmanager.begin("BOINC_PING") for _ in range(MANY // 2)]
    ids += [
        neighbours.gridmanager.begin(
            "BOINC_SUBMIT",
            *submission(f"hung{number}", f"app{number}", {f"hung.{number}": ([], [])}),
        )
        for number in range(MANY)
    ]
    wait_for(lambda: len(proxy.seen) >= LimitSettings().control_workers, "requests that hang")
    neighbours.check_healthy_is_served(tmp_path / "healthy")
    assert neighbours.process.num_threads() < MANY + 20


@pytest.mark.parametrize("trouble", ["trickles", "hangs"])
def test_jobs_of_the_batch_type_come_home_beside_a_project_that(trouble, project, tmp_path):
    node = Node(tmp_path, project)
    settings = tmp_path / ".config" / "boinc_gahp" / "boinc_gahp.toml"
    with FaultProxy(project.url) as proxy:
        hostile = f"url = '{proxy.url}'\nauthenticator = '{project.add_user(trouble)}'\n"
        settings.write_text(f"{settings.read_text()}[projects.hostile]\n{hostile}")
        if trouble == "hangs":
            proxy.fail("*", faultproxy.hang(), times=None)
        proxy.fail("result_file", faultproxy.drip(1.0), times=None)
        with node.batch_gridmanager() as gridmanager:
            names = [f"{trouble}-{number}" for number in range(10)]
            bad = gridmanager.submit_all(node.ad(name, BoincProject="hostile") for name in names)
            if trouble == "hangs":
                wait_for(lambda: proxy.seen, "a request that hangs")
            else:
                wait_for(lambda: proxy.count("result_file") >= 8, "outputs that trickle")
            good = gridmanager.submit_all([node.ad(f"good-{trouble}")])
            assert gridmanager.follow(good)[good[0]].word == HTCondorState.COMPLETED
            assert (tmp_path / f"good-{trouble}.out").read_text() == "SOME TEXT\n"
            if trouble == "hangs":
                gridmanager.cancel(*bad)
