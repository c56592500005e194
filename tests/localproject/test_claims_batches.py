"""``web-rpcs.rst`` on batches and jobs: each sentence that no recording shows."""

import http.server
import re
import threading
from functools import partial

import pytest

from boinc_gahp.localproject.backend.transitioner import transition_pass
from tests.inside import batches, workunit_names
from tests.localproject.client import Client, error, job, value, with_file
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


# submit_batch


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ([job("j", "x.dat", "y.dat")], "wrong # of input files for job 0: need 1, got 2"),
        ([job("j", "absent.dat")], "md5_file: can't open"),
        (
            ["<job><input_file><mode>odd</mode><source>x</source></input_file></job>"],
            "unsupported file mode: odd",
        ),
        ([job("j", "x.dat", more="<target_team>1</target_team>")], "'--target_team'"),
        ([job("j", "x.dat", more="<target_user>999</target_user>")], "create_work failed: "),
    ],
    ids=["files", "absent", "mode", "team", "user"],
)
def test_what_fails_leaves_a_batch_that_can_be_submitted(client, jobs, words):
    Stage(client.project).file("x.dat")
    batch_id = client.create_batch("b")
    assert words in error(client.submit(batch_id, jobs))
    assert value(client.rpc("query_batch", batch_id=batch_id), "state") == "0"
    assert workunit_names(client.project) == []
    assert value(client.submit(batch_id, [job("j", "x.dat")]), "batch_id") == str(batch_id)


@pytest.mark.parametrize(("element", "kind"), [("target_host", 1), ("target_user", 2)])
def test_a_job_can_be_for_one_host_or_user_only(client, element, kind):
    Stage(client.project).file("x.dat")
    with client.project.core.db.write() as connection:
        connection.execute(
            "INSERT OR IGNORE INTO host (id, create_time, userid, domain_name, p_fpops, m_nbytes, "
            "d_free, n_bwdown) VALUES (1, 1, 1, 'h', 0, 1, 1, 1)"
        )
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [job("j", "x.dat", more=f"<{element}>1</{element}>")])
    assert value(reply, "batch_id") == str(batch_id)
    rows = client.rows(
        "SELECT target_type, target_id FROM assignment a JOIN workunit w ON w.id = a.workunitid "
        "WHERE w.name = 'j'"
    )
    assert [tuple(row) for row in rows] == [(kind, 1)]


def test_jobs_without_a_name_are_named_for_app_process_and_time(client):
    Stage(client.project).file("x.dat")
    batch_id = client.create_batch("b")
    unnamed = job("", "x.dat").replace("<name></name>", "")
    client.submit(batch_id, [unnamed, unnamed])
    first, second = workunit_names(client.project)
    assert re.fullmatch(r"uppercase_\d+_\d+\.\d+_\d+", first)
    assert first.rpartition("_")[0] == second.rpartition("_")[0]


@pytest.mark.parametrize("ended", ["retire_batch", "abort_batch"])
def test_job_names_are_unique_in_the_whole_project_for_ever(client, ended):
    Stage(client.project).file("x.dat")
    batch_id = client.create_batch("one")
    client.submit(batch_id, [job("Job", "x.dat")])
    client.rpc(ended, batch_id=batch_id)
    reply = client.submit(client.create_batch("two"), [job("jOB", "x.dat")])
    assert "Duplicate entry 'jOB' for key 'name'" in error(reply)


def test_a_duplicate_in_the_first_piece_makes_no_job(client):
    Stage(client.project).file("x.dat")
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [job("j1", "x.dat"), job("j1", "x.dat")])
    assert "Duplicate entry 'j1'" in error(reply)
    batch = client.rpc("query_batch", batch_id=batch_id)
    assert (value(batch, "state"), value(batch, "njobs")) == ("0", "2")
    assert workunit_names(client.project) == []
    assert value(client.submit(batch_id, [job("j1", "x.dat")]), "batch_id") == str(batch_id)


def test_a_batch_that_was_partly_made_can_be_aborted(client):
    Stage(client.project).file("x.dat")
    batch_id = client.create_batch("b")
    names = [f"job_{n:012}" for n in range(2000)]
    client.submit(batch_id, [job(name, "x.dat") for name in [*names, names[0]]])
    made = workunit_names(client.project)
    # "1337 jobs of this shape", where a URL is a little longer than ours.
    assert 1200 < len(made) < 1700
    assert set(client.statuses("b")) == set(made)
    client.rpc("abort_batch", batch_id=batch_id)
    assert value(client.rpc("query_batch", batch_id=batch_id), "state") == "3"
    assert set(client.statuses("b").values()) == {"ERROR"}


@pytest.fixture
def slow_file():
    """A file's address, and what is done when the file is asked for."""
    actions = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            for action in actions:
                action()
            self.send_response(200)
            self.send_header("Content-Length", "3")
            self.end_headers()
            self.wfile.write(b"abc")

        def log_message(self, format, *args):  # noqa: A002
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/x", actions
        server.shutdown()
        thread.join()


def test_an_abort_during_a_submit_is_undone_by_its_end(client, slow_file):
    url, actions = slow_file
    batch_id = client.create_batch("b")
    with Client(client.project) as other:
        actions.append(partial(other.rpc, "abort_batch", batch_id=batch_id))
        client.submit(batch_id, [with_file("j", "semilocal", url)])
    assert value(client.rpc("query_batch", batch_id=batch_id), "state") == "1"


@pytest.mark.parametrize("length", [189, 190, 191])
def test_a_name_of_190_characters_stops_the_transitioner(bench, length):
    bench.workunit("n" * length)
    for _ in range(2):
        if length > 189:
            with pytest.raises(Exception, match="Data too long for column 'name'"):
                transition_pass(bench.core, bench.now)
        else:
            transition_pass(bench.core, bench.now)


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


def test_a_batch_becomes_complete_when_it_is_asked_for(client):
    Stage(client.project).only("done")
    client.statuses("b")
    assert batches(client.project) == [(1, "b", 1)]
    reply = client.rpc("query_batches")
    assert (value(reply, "state"), value(reply, "fraction_done")) == ("2", "1")
    assert batches(client.project) == [(1, "b", 2)]
