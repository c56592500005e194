"""``web-rpcs.rst`` on files and outputs: each sentence that no recording shows."""

import hashlib

from tests.inside import staged_files
from tests.localproject.client import value
from tests.localproject.stage import Stage

# Files


def _upload(client, *files):
    listed = "".join(f"<phys_name>{name}</phys_name>" for name, _ in files)
    return client.post(
        f"<upload_files><authenticator>{client.authenticator}</authenticator>{listed}"
        "</upload_files>",
        "job_file.php",
        {f"file_{n}": (name, data) for n, (name, data) in enumerate(files)},
    ).text


def test_files_that_a_killed_upload_left_without_their_rows_can_be_sent_again(client):
    client.project.core.download.add_bytes("x.dat", b"x")
    assert "<success/>" in _upload(client, ("x.dat", b"x"), ("y.dat", b"y"))
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
