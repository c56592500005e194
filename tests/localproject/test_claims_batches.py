"""``web-rpcs.rst`` on batches and jobs: each sentence that no recording shows."""

import pytest

from tests.localproject.client import Client, error, value
from tests.localproject.stage import Stage

# create_batch


@pytest.mark.parametrize("first", ["other user's", "retired"])
def test_a_name_leads_to_the_oldest_batch_of_any_user_in_any_state(client, first):
    stage = Stage(client.project)
    if first == "retired":
        old = client.create_batch("b")
        stage.job(1, "old", old)
        client.rpc("retire_batch", batch_id=old)
    else:
        with Client(client.project, client.project.add_user("other")) as other:
            other.create_batch("b")
    new = client.create_batch("b")
    stage.job(2, "new", new)
    reply = client.rpc("query_batch2", batch_name="b")
    if first == "retired":
        assert "<job_name>old</job_name>" in reply
        assert "<job_name>new</job_name>" not in reply
    else:
        assert error(reply) == "not owner of b"
    assert value(client.rpc("retire_batch", batch_id=new), "success") == "1"


@pytest.mark.parametrize("quote", ["'", '"', "\\"])
def test_a_batch_name_with_a_quote_is_taken_and_then_not_found(client, quote):
    batch_id = client.create_batch(f"a{quote}b")
    for rpc in ("query_batch", "abort_batch", "retire_batch", "set_expire_time"):
        assert error(client.rpc(rpc, batch_name=f"a{quote}b")) == "no such batch"
    reply = client.rpc("query_batch2", batch_name=f"a{quote}b")
    assert error(reply) == f"no batch named a\\{quote}b"
    assert value(client.rpc("query_batch", batch_id=batch_id), "name") == f"a{quote}b"


# Queries


def test_a_job_that_was_sent_once_is_in_progress_though_its_retry_is_unsent(client):
    Stage(client.project).only("unsent")
    assert client.statuses("b") == {"j": "UNSENT"}
    with client.project.core.db.write() as connection:
        connection.execute("UPDATE result SET server_state = 5, outcome = 3 WHERE name = 'j_0'")
        connection.execute(
            "INSERT INTO result (create_time, workunitid, server_state, name, xml_doc_in, batch, "
            "random, appid) VALUES (1, 1, 2, 'j_1', '', 1, 1, 1)"
        )
    assert client.statuses("b") == {"j": "IN_PROGRESS"}


def test_an_abort_of_a_done_job_shows_in_its_details_only(client):
    Stage(client.project).only("done")
    client.rpc("abort_jobs", job_name="j")
    assert client.statuses("b") == {"j": "DONE"}
    details = client.rpc("query_batch", batch_id=1, get_job_details=1)
    assert (value(details, "error"), value(details, "status")) == ("cancelled", "error")
