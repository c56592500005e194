"""Outputs that were moved (``containers.rst``, "Outputs that were moved"), and get_output3.php."""

import pytest
import requests

from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import AssimilateState
from tests.helpers import wait_for
from tests.localproject.client import Client, job, value


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("moved") / "project", hosts=1) as project:
        with project.core.db.write() as connection:
            connection.execute("UPDATE app SET assimilator = 'batch_collect_assimilator'")
        project.add_user("other")
        yield project


@pytest.fixture(scope="module")
def client(project):
    with Client(project) as client:
        yield client


def ended(client, name, app="uppercase", *inputs):
    """Run a job; return its batch."""
    batch_id = client.create_batch(f"batch of {name}", app)
    files = client.upload(*(inputs or (b"text",)))
    assert value(client.submit(batch_id, [job(name, *files)], app), "batch_id")
    client.wait()
    # A job is over before its outputs are moved.
    sql = "SELECT 1 FROM workunit WHERE name = ? AND assimilate_state = ?"
    wait_for(lambda: client.rows(sql, name, AssimilateState.DONE), "the assimilator saw it")
    return batch_id


def fetched(client, name, index=0, key=None):
    """Ask get_output3.php for an output of a job's first result."""
    ((result,),) = client.rows("SELECT id FROM result WHERE name = ?", f"{name}_0")
    return asked(client, key, action="get_file", result_id=result, index=index, download=1)


def asked(client, key=None, **arguments):
    return requests.get(
        f"{client.project.url}get_output3.php",
        params=arguments,
        cookies={"auth": key or client.authenticator},
        allow_redirects=False,
        timeout=60,
    )


def test_outputs_are_moved_to_where_get_output_does_not_look(client):
    batch_id = ended(client, "moved")
    path = client.project.directory / "results" / str(batch_id) / "moved__file_out"
    assert path.read_bytes() == b"TEXT"
    assert client.output("moved", 0).text.startswith("ERROR: no such file")
    reply = fetched(client, "moved")
    assert (reply.status_code, reply.content) == (200, b"TEXT")
    assert reply.headers["Content-Disposition"] == "attachment; filename=moved__file_out"


def test_the_index_counts_the_files_of_the_template(client):
    ended(client, "three", "optmid", b"no middle")
    assert fetched(client, "three", 1).content == b""
    assert fetched(client, "three", 2).content != b""
    # That is an HTML page.
    for index, words in ((3, "bad index"), (-1, "bad logical name")):
        assert words in fetched(client, "three", index).text


def test_only_the_owner_and_a_manager_get_a_file(client, project):
    ended(client, "owned")
    other = project.authenticator_of("other")
    assert "not owner" in fetched(client, "owned", key=other).text
    with project.core.db.write() as connection:
        connection.execute(
            "UPDATE user_submit SET manage_all = 1 WHERE user_id = (SELECT id "
            "FROM user WHERE authenticator = ?)",
            (other,),
        )
    assert fetched(client, "owned", key=other).content == b"TEXT"


def test_nobody_is_sent_to_the_form_and_what_is_missing_is_answered_as_by_other_pages(client):
    place = "next_url=get_output3.php%3Faction%3Dget_file%26result_id%3D"
    ended(client, "nobodys")
    reply = fetched(client, "nobodys", key="0" * 32)
    assert reply.status_code == 302
    assert reply.headers["Location"].startswith(f"/test/login_form.php?{place}")
    reply = asked(client, action="get_file", index=0)
    assert reply.headers["Location"] == "/test/missing_arg_result_id.html"
    assert "no result" in asked(client, action="get_file", result_id=10**6, index=0).text


def test_the_outputs_of_a_retired_batch_are_gone(client):
    batch_id = ended(client, "retired")
    client.rpc("retire_batch", batch_id=batch_id)
    assert not (client.project.directory / "results" / str(batch_id)).exists()
