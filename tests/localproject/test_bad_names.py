"""Names, wherever they stand in a request: none leads out of the project's directory."""

import re

import pytest

from tests.inside import staged_files, workunit_names
from tests.localproject.client import error, job
from tests.localproject.stage import Stage

BAD_NAMES = {
    "up": "../../../secret",
    "absolute": "/etc/passwd",
    "slash": "a/b",
    "dots": "..",
    "newline": "a\nb",
    "carriage return": "a\rb",
    "escape": "%2e%2e%2fsecret",
    "backslash": "..\\secret",
    "long": "n" * 5000,
    "quote": "x'; DROP TABLE workunit; --",
}
#: What cannot be sent as it is, only as a character reference that no parser takes.
NO_TEXT = {"nul": "a\0b", "surrogate": "a&#xD800;b"}


@pytest.fixture
def guarded(client):
    """A project beside which there is a secret; nothing else may appear there."""
    secret = client.project.directory.parent / "secret"
    secret.write_text("root:secret")
    before = _tree(secret.parent, {client.project.directory})
    yield client
    assert _tree(secret.parent, {client.project.directory}) == before
    inside = {path.name for path in client.project.directory.iterdir()}
    assert not inside & {"a", "b", "passwd"}
    client.project.check()
    secret.unlink()


def _tree(directory, but):
    return {path for path in directory.rglob("*") if not but & {path, *path.parents}}


#: Where a name stands that the project looks for among its files.
_PLACES = {
    "app of templates": "<get_templates>{auth}<app_name>{name}</app_name></get_templates>",
    "files to query": "<query_files>{auth}<phys_name>{name}</phys_name></query_files>",
}
_SUBMIT_PLACES = {
    "staged": "<job><input_file><mode>local_staged</mode><source>{name}</source></input_file>"
    "</job>",
    "sandbox": "<job><input_file><mode>sandbox</mode><source>{name}</source></input_file></job>",
    "input template": "<input_template_filename>{name}</input_template_filename><job>{file}</job>",
    "output template": "<output_template_filename>{name}</output_template_filename>"
    "<job>{file}</job>",
}
for _place, _text in _SUBMIT_PLACES.items():
    _PLACES[f"submit: {_place}"] = (
        "<submit_batch>{auth}<batch><batch_name>{number}</batch_name><app_name>uppercase</app_name>"
        f"{_text}</batch></submit_batch>"
    )
_FILE = "<input_file><mode>local_staged</mode><source>x.dat</source></input_file>"


@pytest.mark.parametrize("place", _PLACES)
def test_no_name_leads_anywhere(guarded, place):
    """In each place where it could name a file, whatever it holds."""
    stage = Stage(guarded.project)
    page = "job_file.php" if "files" in place else "submit_rpc_handler.php"
    auth = f"<authenticator>{guarded.authenticator}</authenticator>"
    stage.file("x.dat")
    for number, name in enumerate((BAD_NAMES | NO_TEXT).values()):
        escaped = name.replace("'", "&apos;")
        document = _PLACES[place].format(auth=auth, name=escaped, file=_FILE, number=number)
        reply = guarded.post(document, page)
        assert reply.status_code == 200, name[:50]
        assert "root:" not in reply.text
        assert "Traceback" not in reply.text


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
def test_no_uploaded_file_lies_where_its_name_says(guarded, name):
    reply = guarded.put((name, b"x"))
    if name == BAD_NAMES["backslash"] or re.search(r"[^\w.\- ]|^\.\.$", name) or len(name) > 255:
        assert error(reply) == "bad filename"
    assert staged_files(guarded.project) == []


@pytest.mark.parametrize("name", [*BAD_NAMES.values(), "\0"], ids=[*BAD_NAMES, "nul"])
def test_no_name_in_an_address_leads_anywhere(guarded, name):
    auth = guarded.authenticator
    for arguments in (
        {"cmd": "workunit_file", "wu_name": name, "file_num": "0", "auth_str": auth},
        {"cmd": "result_file", "result_name": name, "file_num": "0", "auth_str": auth},
        {"cmd": "workunit_file", "wu_name": "j", "file_num": name, "auth_str": auth},
        {"cmd": "batch_files", "batch_id": name, "auth_str": auth},
        {"cmd": name, "auth_str": auth},
        {"cmd": "batch_files", "batch_id": "9" * 30, "auth_str": auth},
    ):
        reply = guarded.get(**arguments)
        assert reply.status_code in (200, 404)
        assert "root:" not in reply.text
    url = f"{guarded.project.url}download/1b5/{name.replace('%', '%25').replace(chr(0), '%00')}"
    assert guarded.session.get(url, timeout=60).status_code in (400, 404)


def test_sql_is_never_injected(client):
    Stage(client.project).file("x.dat")
    evil = "x', 1, 1); UPDATE user SET authenticator = 'x'; --"
    batch_id = client.create_batch(evil)
    reply = client.submit(batch_id, [job("j", "x.dat", command_line=evil)])
    assert "You have an error in your SQL syntax" in error(reply)
    for field in ("min_mod_time", "batch_id", "expire_time", "job_id"):
        for rpc in ("query_batch2", "query_batch", "set_expire_time", "query_job"):
            client.rpc(rpc, f"<batch_name>{evil}</batch_name>", **{field: evil})
    assert workunit_names(client.project) == []
    assert client.project.authenticator == client.authenticator
