"""``web-rpcs.rst`` on files and outputs: each sentence that no recording shows."""

import hashlib

import pytest

from tests.inside import staged_files, workunit_names
from tests.localproject.client import error, job, value
from tests.localproject.stage import Stage

# Files


def _query(client, *names, more=""):
    listed = "".join(f"<phys_name>{name}</phys_name>" for name in names)
    return client.post(
        f"<query_files><authenticator>{client.authenticator}</authenticator>{more}{listed}"
        "</query_files>",
        "job_file.php",
    ).text


def _upload(client, *files):
    listed = "".join(f"<phys_name>{name}</phys_name>" for name, _ in files)
    return client.post(
        f"<upload_files><authenticator>{client.authenticator}</authenticator>{listed}"
        "</upload_files>",
        "job_file.php",
        {f"file_{n}": (name, data) for n, (name, data) in enumerate(files)},
    ).text


def test_a_query_repeated_without_a_batch_succeeds(stock):
    Stage(stock.project).file("x.dat", b"x", 1)
    assert "Duplicate entry" in _query(stock, "x.dat", more="<batch_id>1</batch_id>")
    assert value(_query(stock, "x.dat"), "absent_files").strip() == ""


def test_a_later_delete_time_is_kept_though_it_is_said_to_fail(client):
    Stage(client.project).file("x.dat")
    reply = _query(client, "x.dat", more="<delete_time>4e9</delete_time>")
    assert "job_file->update() failed:" in reply
    assert client.rows("SELECT delete_time FROM job_file")[0][0] == 4e9


def test_a_name_of_192_characters_dies_after_the_file_was_stored(stock):
    name = "n" * 192
    assert "Data too long" in _upload(stock, (name, b"x"))
    assert stock.project.core.download.exists(name)
    assert staged_files(stock.project) == []


def test_a_file_name_with_a_space_is_taken_and_then_of_no_use(client):
    assert "<success/>" in _upload(client, ("a b.dat", b"x"))
    reply = client.submit(client.create_batch("b"), [job("j", "a b.dat")])
    assert "md5_file: can't open" in error(reply)
    assert workunit_names(client.project) == []


def test_files_before_a_bad_one_stay_and_those_after_do_not(client):
    Stage(client.project).file("bad.dat", b"known")
    reply = _upload(client, ("good.dat", b"x"), ("bad.dat", b"other"), ("late.dat", b"y"))
    assert error(reply) == "file immutability violation for bad.dat"
    assert staged_files(client.project) == ["bad.dat", "good.dat"]
    assert value(_query(client, "good.dat", "late.dat"), "file") == "1"
    assert not list((client.project.directory / "spool").iterdir())


def test_after_a_failed_upload_a_query_tells_what_is_absent(stock):
    Stage(stock.project).file("x.dat", b"x")
    assert "Duplicate entry" in _upload(stock, ("x.dat", b"x"), ("y.dat", b"y"))
    assert value(_query(stock, "x.dat", "y.dat"), "file") == "1"
    assert "<success/>" in _upload(stock, ("y.dat", b"y"))


def test_files_that_a_killed_upload_left_without_their_rows_can_be_sent_again(client):
    client.project.core.download.add_bytes("x.dat", b"x")
    assert "<success/>" in _upload(client, ("x.dat", b"x"), ("y.dat", b"y"))
    assert staged_files(client.project) == ["x.dat", "y.dat"]


def test_5000_names_can_be_asked_for_at_once(client):
    Stage(client.project).file("n2500.dat")
    reply = _query(client, *(f"n{number}.dat" for number in range(5000)))
    assert reply.count("<file>") == 4999
    assert "<file>2500</file>" not in reply


# get_output


def test_a_good_output_has_its_length_type_and_name(client):
    Stage(client.project).only("done", files={0: b"output"})
    reply = client.output("j")
    assert reply.content == b"output"
    assert reply.headers["Content-Type"] == "application/octet-stream"
    assert reply.headers["Content-Length"] == "6"
    assert reply.headers["Content-Disposition"] == "attachment; filename=j_0_r799338679_0"


@pytest.mark.parametrize(
    ("arguments", "signed_for"),
    [
        ({"cmd": "workunit_file", "wu_name": "j", "file_num": 0}, None),
        ({"cmd": "result_file", "result_name": "j_0", "file_num": 0}, "j_0"),
        ({"cmd": "workunit_files", "wu_id": 1}, "1"),
        ({"cmd": "batch_files", "batch_id": 1}, "1"),
    ],
    ids=lambda argument: argument["cmd"] if isinstance(argument, dict) else "",
)
def test_only_the_owners_signature_opens_an_output(client, arguments, signed_for):
    Stage(client.project).only("done", files={0: b"output"})
    good = client.authenticator if signed_for is None else client.signed(signed_for)
    assert client.get(**arguments, auth_str=good).headers["Content-Type"].startswith("application")
    for wrong in ("x", client.signed("other"), hashlib.md5(b"1").hexdigest(), f"{good} "):
        assert client.get(**arguments, auth_str=wrong).text.startswith("ERROR: bad auth")


def test_outputs_of_jobs_without_a_batch_are_nobodys(client):
    stage = Stage(client.project)
    stage.job(1, "j", 0, "done", files={0: b"output"})
    unsigned = hashlib.md5(b"j_0").hexdigest()
    reply = client.get(cmd="result_file", result_name="j_0", file_num=0, auth_str=unsigned)
    assert reply.text == "ERROR: no batch 0"


def test_a_completed_job_is_described_also_when_its_outputs_are_gone(client):
    Stage(client.project).only("done", files={0: b"output"})
    client.project.core.upload.remove("j_0_r799338679_0")
    assert client.output("j").text.startswith("ERROR: no such file: ")
    reply = client.rpc("query_completed_job", job_name="j")
    assert value(reply, "exit_status") == "0"


def test_a_completed_job_is_described_though_its_instance_is_gone(client):
    Stage(client.project).only("done")
    with client.project.core.db.write() as connection:
        connection.execute("DELETE FROM result")
    reply = client.rpc("query_completed_job", job_name="j")
    assert int(value(reply, "canonical_resultid")) > 0
    assert reply.endswith("</query_completed_job>\n")
    assert "<exit_status>" not in reply


def test_a_batch_without_outputs_gives_a_zip_of_no_bytes(client):
    batch_id = client.create_batch("b")
    reply = client.get(cmd="batch_files", batch_id=batch_id, auth_str=client.signed(batch_id))
    assert (reply.headers["Content-Length"], reply.content) == ("0", b"")
