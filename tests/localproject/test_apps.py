"""The supplied apps, from submission to outputs, over real HTTP."""

import hashlib

import pytest

from boinc_gahp.localproject.project import LocalProject
from tests.localproject.client import Client, value


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=3) as project:
        yield project


@pytest.fixture(scope="module")
def client(project):
    with Client(project) as client:
        yield client


def test_a_completed_job_tells_times_and_stderr_in_the_clients_wrapper(client):
    client.run("told", {"told_1": ("--sleep 0.2 ''a  &lt;b>'' c", [b"x"])})
    reply = client.rpc("query_completed_job", job_name="told_1")
    assert value(reply, "exit_status") == "0"
    assert float(value(reply, "elapsed_time")) >= 0.2
    assert float(value(reply, "cpu_time")) > 0
    assert (
        "<stderr_out><![CDATA[\n"
        "&lt;core_client_version&gt;7.20.5&lt;/core_client_version&gt;\n"
        "&lt;![CDATA[\n&lt;stderr_txt&gt;\n"
        "starting uppercase args: --sleep 0.2 a  &lt;b&gt; c\n"
        "called boinc_finish(0)\n\n&lt;/stderr_txt&gt;\n]]&gt;\n   ]]></stderr_out>"
    ) in reply


def _stderr(client, job_name):
    """The last one: the RPC does not tell it for a failed job."""
    query = "SELECT stderr_out FROM result WHERE name LIKE ? ORDER BY id DESC"
    return str(client.rows(query, f"{job_name}%")[0][0])


def test_files_of_other_modes_reach_the_job(client, tmp_path):
    (client.project.directory / "local" / "l.txt").write_text("local")
    (name,) = client.upload(b"staged")
    url = f"{client.project.url}download/any/{name}"
    md5 = hashlib.md5(b"staged").hexdigest()
    files = {
        "inline": "<mode>inline</mode><source>café &amp;</source>",
        "local": "<mode>local</mode><source>l.txt</source>",
        "semilocal": f"<mode>semilocal</mode><source>{url}</source>",
        "remote": f"<mode>remote</mode><url>{url}</url><nbytes>6.0</nbytes><md5>{md5}</md5>",
        "wrong": f"<mode>remote</mode><url>{url}</url><nbytes>6.0</nbytes><md5>{'0' * 32}</md5>",
    }
    batch_id = client.create_batch("modes")
    jobs = [
        f"<job><name>mode_{mode}</name><input_file>{file}</input_file></job>"
        for mode, file in files.items()
    ]
    assert value(client.submit(batch_id, jobs), "batch_id")
    client.wait()
    assert client.output("mode_inline").text == "CAFÉ &"
    assert client.output("mode_local").text == "LOCAL"
    assert client.output("mode_semilocal").text == client.output("mode_remote").text == "STAGED"
    assert client.statuses("modes")["mode_wrong"] == "ERROR"
    assert "MD5 check failed" in _stderr(client, "mode_wrong")


def test_an_app_is_added_with_the_names_of_its_files(client, tmp_path, monkeypatch):
    (tmp_path / "two words.py").write_text(
        "open('copy', 'w').write(open('text').read() * 2); open('log', 'w').close(); print('said')"
    )
    monkeypatch.chdir(tmp_path)
    add = client.project.add_app
    add("typed", "{python} 'two words.py'", "text", "copy", optional_outputs=["log", "more"])
    add("listed", ["{python}", tmp_path / "two words.py"], ["text"], ["copy"], quorum=2)
    for app, quorum in (("typed", 1), ("listed", 2)):
        client.run(app, {f"{app}_1": ("", [b"ab"])}, app)
        assert client.output(f"{app}_1").content == b"abab"
        query = "SELECT min_quorum FROM workunit WHERE name = ?"
        assert client.rows(query, f"{app}_1")[0][0] == quorum
    # As the help says.
    add("says", "{python} 'two words.py'", "text", "stdout.txt")
    client.run("says", {"says_1": ("", [b"ab"])}, "says")
    assert client.output("says_1").content == b"said\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "a b"}, "an app cannot be named 'a b'"),
        ({"name": "uppercase"}, "there is an app 'uppercase' already"),
        ({"command": "{python} dekay.py"}, "the script 'dekay.py' of the command is not there"),
        ({"command": "nosuchprogram x"}, "the program 'nosuchprogram' cannot be run"),
        ({"command": []}, "the command is empty"),
        ({"outputs": ()}, "no output file"),
        ({"inputs": ["../up"]}, "leads out of the job's directory"),
    ],
    ids=["name", "taken", "script", "program", "nothing", "no output", "path"],
)
def test_an_app_that_cannot_be_added_is_refused_in_words(client, wrong, said):
    right = {"name": "new", "command": "true", "inputs": "in", "outputs": "out"}
    with pytest.raises(ValueError, match=said):
        client.project.add_app(**{**right, **wrong})
    assert [row["name"] for row in client.rows("SELECT name FROM app WHERE name = 'new'")] == []
