"""Who may do what by RPC: accounts, rights to single apps, limits, other people's batches."""

import pytest

from tests.inside import batches, workunit_names
from tests.localproject.client import Client, error, job, value
from tests.localproject.stage import Stage

#: What names the other user's batch and job in each RPC that changes one, and what is answered.
NOT_MINE = {
    "submit_batch": (
        "<batch><batch_id>1</batch_id><app_name>uppercase</app_name></batch>",
        "not owner of batch",
    ),
    "abort_jobs": ("<job_name>j</job_name>", "not owner of batch"),
    "abort_batch": ("<batch_name>theirs</batch_name>", "not owner"),
    "retire_batch": ("<batch_id>1</batch_id>", "not owner of batch"),
    "set_expire_time": ("<batch_id>1</batch_id><expire_time>1</expire_time>", "not owner of batch"),
}


@pytest.fixture
def others(client):
    """Users with few rights, each with a client of its own."""
    project = client.project
    rights = {
        "all_apps": {},
        "limited": {"max_jobs_in_progress": 3},
    }
    clients = {
        name: Client(project, project.add_user(name, **right)) for name, right in rights.items()
    }
    yield clients
    for each in clients.values():
        each.session.close()


@pytest.mark.parametrize("rpc", NOT_MINE)
def test_other_peoples_batches_are_left_alone(client, others, rpc):
    stage = Stage(client.project)
    stage.job(1, "j", stage.batch(1, "theirs", user="submitter"), "unsent")
    inner, words = NOT_MINE[rpc]
    assert error(others["all_apps"].rpc(rpc, inner)) == words
    assert client.statuses("theirs") == {"j": "UNSENT"}
    assert batches(client.project) == [(1, "theirs", 1)]


@pytest.mark.parametrize(
    ("states", "more", "refused"),
    [
        ((), 3, False),
        ((), 4, True),
        (("unsent", "in_progress"), 1, False),
        (("unsent", "in_progress"), 2, True),
        (("done", "failed", "aborted"), 3, False),
        (("done", "unsent"), 3, True),
        (("aborted_in_progress", "unsent"), 2, True),
    ],
)
def test_unfinished_results_and_the_new_jobs_are_counted(others, states, more, refused):
    client = others["limited"]
    stage = Stage(client.project)
    stage.file("x.dat")
    stage.batch(1, "before", user="limited")
    stage.batch(2, "of another", user="all_apps")
    stage.job(100, "another's", 2, "unsent")
    for number, state in enumerate(states, 1):
        stage.job(number, f"before{number}", 1, state)
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [job(f"j{number}", "x.dat") for number in range(more)])
    if refused:
        assert error(reply) == "limit on jobs in progress exceeded"
        assert workunit_names(client.project, "b") == []
    else:
        assert value(reply, "batch_id") == str(batch_id)
