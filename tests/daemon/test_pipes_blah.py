"""The installed command as HTCondor 10 and later uses it, with a local project."""

import pytest

from tests.daemon.home import Node
from tests.inside import workunit_names

pytestmark = pytest.mark.long


@pytest.fixture
def node(tmp_path, project):
    return Node(tmp_path, project)


def jobs_of(project):
    return len(workunit_names(project))


def test_jobs_go_to_the_project_in_a_batch_and_their_files_come_back(node, project):
    before = jobs_of(project)
    names = [f"1.{number}" for number in range(16)]
    with node.batch_gridmanager() as gridmanager:
        jobs = gridmanager.submit_all(node.ad(name, Arguments="a<b &amp; <!--") for name in names)
        statuses = gridmanager.follow(jobs)
        assert {status.word for status in statuses.values()} == {4}
        assert {status["ExitCode"] for status in statuses.values()} == {0}
        for name in names:
            assert (node.directory / f"{name}.out").read_text() == "SOME TEXT\n"
            said = (node.directory / "errors" / name).read_text()
            assert "uppercase args: a<b &amp; <!--\n" in said
            assert "boinc_finish" in said
    assert node.told() == 16
    assert jobs_of(project) == before + 16
    assert len(list(node.directory.rglob("boinc_gahp.log"))) == 1
    assert node.log().count("is submitted: ") < 16
    assert project.authenticator not in node.log()


def test_why_a_job_is_refused_is_reported(node):
    with node.batch_gridmanager() as gridmanager:
        assert "nowhere.txt" in gridmanager.refusal(node.ad("3.0", TransferInput="nowhere.txt"))
        assert "cannot be read" in gridmanager.refusal("[ Cmd = ")
        (job,) = gridmanager.submit_all([node.ad("3.1", BoincApp="nosuchapp")])
        status = gridmanager.follow([job])[job]
        assert status.word == 5
        assert "nosuchapp" in str(status["HoldReason"])
        assert status["HoldReasonCode"] == 2302
        gridmanager.cancel(job, "boinc/00000000.1", "nonsense")
        # Released: a new attempt.
        (again,) = gridmanager.submit_all([node.ad("3.1")])
        assert again != job
        assert gridmanager.follow([again])[again].word == 4
