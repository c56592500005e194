"""What a real project answers where no recording shows it (``web-rpcs.rst``)."""

import hashlib
import html

import pytest

from tests.inside import fail_workunit, staged_files
from tests.localproject.client import Client, error, job, value
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


# Files


def test_files_that_a_killed_upload_left_without_their_rows_can_be_sent_again(client):
    client.project.core.download.add_bytes("x.dat", b"x")
    assert "<success/>" in client.put(("x.dat", b"x"), ("y.dat", b"y"))
    assert staged_files(client.project) == ["x.dat", "y.dat"]


# get_output


def test_only_the_owners_signature_opens_an_archive(client):
    Stage(client.project).only("done", files={0: b"output"})
    job = {"cmd": "workunit_files", "wu_id": 1}
    good = client.signed("1")
    assert client.get(**job, auth_str=good).headers["Content-Type"].startswith("application")
    for wrong in ("x", client.signed("other"), hashlib.md5(b"1").hexdigest(), f"{good} "):
        assert client.get(**job, auth_str=wrong).text.startswith("ERROR: bad auth")


def test_outputs_of_jobs_without_a_batch_are_nobodys(client):
    stage = Stage(client.project)
    stage.job(1, "j", 0, "done", files={0: b"output"})
    unsigned = hashlib.md5(b"j_0").hexdigest()
    reply = client.get(cmd="result_file", result_name="j_0", file_num=0, auth_str=unsigned)
    assert reply.text == "ERROR: no batch 0"


def test_a_completed_job_is_described_though_its_instance_is_gone(client):
    Stage(client.project).only("done")
    with client.project.core.db.write() as connection:
        connection.execute("DELETE FROM result")
    reply = client.rpc("query_completed_job", job_name="j")
    assert int(value(reply, "canonical_resultid")) > 0
    assert reply.endswith("</query_completed_job>\n")
    assert "<exit_status>" not in reply


TOO_MANY = (
    "create_work failed: process_input_template: {} input files given, but template has {}\n"
    "process_input_template(): unexpected XML tag or syntax\ncreate_work() failed: -112\n"
)


def _batch(client, batch_id):
    """State, njobs and completion_time, as query_batch gives them."""
    reply = client.rpc("query_batch", batch_id=batch_id)
    return value(reply, "state"), value(reply, "njobs"), value(reply, "completion_time")


def test_retiring_a_batch_that_is_over_notes_when_that_was_seen(client):
    batch_id, name = client.begun("b")
    client.submit(batch_id, [job("j", name)])
    fail_workunit(client.project, "j")
    client.rpc("retire_batch", batch_id=batch_id)
    state, _, completed = _batch(client, batch_id)
    assert state == "4"
    assert int(completed) > 1_700_000_000


def test_an_input_template_that_is_not_there_is_for_create_work_to_refuse(client):
    batch_id, name = client.begun("b")
    missing = "<input_template_filename>nosuch_in</input_template_filename>"
    reply = client.submit(batch_id, [job("j", name)], more=missing)
    assert error(reply).startswith("create_work failed: Can't read WU template")
    # The number of files is compared with the app's template all the same.
    reply = client.submit(batch_id, [job("j")], more=missing)
    assert error(reply) == "wrong # of input files for job 0: need 1, got 0"


def test_the_number_of_files_is_the_apps_whatever_template_the_batch_names(client):
    info, ref = "<file_info></file_info>", "<file_ref><copy_file/></file_ref>"
    path = client.project.core.templates / "two_in"
    path.write_text(f"{info}{info}<workunit>{ref}{ref}</workunit>")
    batch_id = client.create_batch("b")
    names = client.upload(b"x", b"y")
    given = "<input_template_filename>two_in</input_template_filename>"
    reply = client.submit(batch_id, [job("j", *names)], more=given)
    assert error(reply) == "wrong # of input files for job 0: need 1, got 2"
    assert _batch(client, batch_id)[0] == "0"


@pytest.mark.parametrize("rpc", ["query_batch", "abort_batch", "retire_batch", "set_expire_time"])
def test_a_batch_id_of_0_is_none(client, rpc):
    assert error(client.rpc(rpc, batch_id=0)) == "batch not specified"
    assert error(client.rpc(rpc, batch_name=0)) == "batch not specified"
    # The text counts: this one is not empty for PHP, and there is no such batch.
    assert error(client.rpc(rpc, batch_id="00")) == "no such batch"
    batch_id = client.create_batch("b")
    assert f"<id>{batch_id}</id>" in client.rpc("query_batch", batch_id=0, batch_name="b")


def test_a_template_without_file_refs_is_for_create_work_to_refuse(client):
    (name,) = client.upload(b"x")
    infos = "<file_info></file_info>"
    for text, said in (
        (f"{infos}<workunit></workunit>", "#file refs != #file infos"),
        ("<workunit><file_ref><open_name>a</open_name></file_ref></workunit>",
         "too many <file_ref>s"),
        (f"{infos}<workunit><file_ref></file_ref></workunit>",
         "No open name found and copy_file not specified"),
        (infos, "process_input_template: bad WU template - no <workunit>"),
    ):  # fmt: skip
        own = f"<input_template>{text}</input_template>"
        batch_id = client.create_batch(f"b{len(text)}")
        reply = client.submit(batch_id, [job("j", name, more=own)])
        expected = (
            f"create_work failed: {said}\n"
            "process_input_template(): unexpected XML tag or syntax\ncreate_work() failed: -112\n"
        )
        assert html.unescape(error(reply)) == expected, text
        assert _batch(client, batch_id)[0] == "0"


def test_of_a_job_name_with_a_space_the_rest_is_an_input_file(client):
    first, second = client.upload(b"x", b"y")
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [job(f"a {second}", first)])
    assert error(reply) == TOO_MANY.format(2, 1)
    reply = client.submit(batch_id, [job("a b", first)])
    assert error(reply).startswith("create_work failed: md5_file: can't open ")


@pytest.mark.parametrize(
    ("params", "each", "said"),
    [
        ("", "", "no rsc_fpops_est given"),
        ("<job_params></job_params>", "", "no rsc_fpops_est given"),
        ("<job_params><rsc_fpops_est>0</rsc_fpops_est></job_params>", "", "--flops 0 --app"),
        ("", "<rsc_fpops_est>1e9</rsc_fpops_est>", ""),
        ("<job_params><rsc_fpops_est>1e9</rsc_fpops_est></job_params>", "", ""),
    ],
    ids=["none", "no element", "0", "each job's", "job_params"],
)
def test_an_allocation_needs_an_estimate_for_each_job(client, params, each, said):
    (name,) = client.upload(b"x")
    batch_id = client.create_batch("b")
    more = f"<allocation_priority>1</allocation_priority>{params}"
    reply = client.submit(batch_id, [job("j", name, more=each)], more=more)
    if said:
        assert said in error(reply)
        assert _batch(client, batch_id)[0] == "0"
    else:
        assert f"<batch_id>{batch_id}</batch_id>" in reply


def test_a_dot_in_a_jobs_name_empties_the_archive_of_its_outputs(client):
    stage = Stage(client.project)
    stage.batch(1, "b", user="submitter")
    for number, name in enumerate(("with.dot", "without"), 1):
        stage.job(number, name, 1, "done")
        packed = client.get(cmd="workunit_files", wu_id=number, auth_str=client.signed(number))
        assert packed.status_code == 200
        assert (packed.content == b"") == ("." in name), name
