"""What comes from the network and is wrong, or ill-meant: answered, and without effect."""

import hashlib
import os

import pytest
from hypothesis import given, settings, strategies as st

from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.server.application import FILE_RPCS, SUBMIT_RPCS, make_app
from tests.inside import workunit_names
from tests.localproject.client import error, job
from tests.localproject.stage import Stage

PAGES = ["submit_rpc_handler.php", "job_file.php"]

# XML


def _doctype(definitions, content):
    return f"<!DOCTYPE ping [{definitions}]><ping>{content}</ping>"


_LAUGHS = '<!ENTITY a0 "ha">' + "".join(
    f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10)
)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(_doctype(_LAUGHS, "&a9;"), id="billion laughs"),
        pytest.param(_doctype(f'<!ENTITY a "{"a" * 50_000}">', "&a;" * 5000), id="quadratic"),
        pytest.param(_doctype('<!ENTITY a SYSTEM "file:///etc/passwd">', "&a;"), id="external"),
        pytest.param(
            _doctype('<!ENTITY % a SYSTEM "http://127.0.0.1:9/">%a;', " "), id="parameter"
        ),
        pytest.param("<a>" * 200_000, id="deep"),
        pytest.param("", id="nothing"),
    ],
)
@pytest.mark.parametrize("page", PAGES)
def test_bad_xml_is_no_request(client, page, document):
    reply = client.post(document, page)
    assert reply.status_code == 200
    assert "can't parse request message: " in reply.text
    assert "root:" not in reply.text


def test_contents_that_are_not_what_their_name_says_cannot_be_replaced(client):
    """The server does not compare a name with an MD5; but what is there stays there."""
    name = f"{hashlib.md5(b'true').hexdigest()}.dat"
    core = client.project.core
    for contents, words in ((b"false", "<success/>"), (b"true", "file immutability violation")):
        assert words in client.put((name, contents))
    assert core.download.path(name).read_bytes() == b"false"
    client.submit(client.create_batch("b"), [job("j", name)])
    assert hashlib.md5(b"false").hexdigest() in client.rows("SELECT xml_doc FROM workunit")[0][0]


# Names


BAD_NAMES = {
    "up": "../../../secret",
    "absolute": "/etc/passwd",
    "escape": "%2e%2e%2fsecret",
    "backslash": "..\\secret",
    "long": "n" * 5000,
    "quote": "x'; DROP TABLE workunit; --",
    # What cannot be sent as it is, only as a character reference that no parser takes.
    "nul": "a\0b",
    "surrogate": "a&#xD800;b",
}


@pytest.fixture
def guarded(client):
    """A project beside which there is a secret; nothing else may appear there."""
    inside = client.project.directory

    def tree():
        beside = {path for path in inside.parent.rglob("*") if inside not in path.parents}
        return beside | set(inside.iterdir())

    secret = inside.parent / "secret"
    secret.write_text("root:secret")
    before = tree()
    yield client
    assert tree() == before
    client.project.check()
    secret.unlink()


_FILE = "<input_file><mode>{mode}</mode><source>{source}</source></input_file>"
_STAGED = f"<job>{_FILE.format(mode='local_staged', source='x.dat')}</job>"
#: Where a name stands that the project looks for among its files.
_PLACES = {
    "app of templates": "<get_templates>{auth}<app_name>{name}</app_name></get_templates>",
    "files to query": "<query_files>{auth}<phys_name>{name}</phys_name></query_files>",
    **{
        f"submit: {place}": "<submit_batch>{auth}<batch><batch_name>{number}</batch_name>"
        f"<app_name>uppercase</app_name>{text}</batch></submit_batch>"
        for place, text in {
            "staged": f"<job>{_FILE.format(mode='local_staged', source='{name}')}</job>",
            "sandbox": f"<job>{_FILE.format(mode='sandbox', source='{name}')}</job>",
            "input template": "<input_template_filename>{name}</input_template_filename>" + _STAGED,
            "output template": "<output_template_filename>{name}</output_template_filename>"
            + _STAGED,
        }.items()
    },
}


@pytest.mark.parametrize("place", _PLACES)
def test_no_name_leads_anywhere(guarded, place):
    """In each place where it could name a file, whatever it holds."""
    Stage(guarded.project).file("x.dat")
    auth = f"<authenticator>{guarded.authenticator}</authenticator>"
    for number, name in enumerate(BAD_NAMES.values()):
        document = _PLACES[place].format(auth=auth, name=name, number=number)
        reply = guarded.post(document, PAGES["files" in place])
        assert reply.status_code == 200, name[:50]
        assert "root:" not in reply.text
        assert "Traceback" not in reply.text


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
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


# Anything at all


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    project = LocalProject(tmp_path_factory.mktemp("any") / "p", hosts=0)
    app = make_app(project.core)
    app.testing = True  # what is raised, is raised here
    with app.test_client() as client:
        yield project, client
    project.close()


_TEXT = st.text(st.characters(codec="utf-8"), max_size=12).map(
    lambda text: text.replace("&", "&amp;").replace("<", "&lt;")
)
_ELEMENTS = st.sampled_from(
    ["authenticator", "batch", "batch_id", "batch_name", "app_name", "job", "job_id", "job_name",
     "name", "phys_name", "input_file", "mode", "source", "expire_time", "min_mod_time",
     "delete_time", "job_params", "get_job_details", "input_template", "command_line"]
)  # fmt: skip
_XML = st.recursive(
    _TEXT | st.sampled_from(["uppercase", "1", "-1", "1e999", "0x1", "9" * 20]),
    lambda inner: st.lists(st.tuples(_ELEMENTS, inner), max_size=5).map(
        lambda pairs: "".join(f"<{tag}>{text}</{tag}>" for tag, text in pairs)
    ),
    max_leaves=12,
)


def _dump(project):
    return list(project.core.db.connection().iterdump())


@settings(max_examples=int(os.environ.get("EXAMPLES", "30")))
@given(body=st.binary(max_size=200), page=st.sampled_from(PAGES))
def test_any_bytes_are_answered_and_change_nothing(pages, body, page):
    project, client = pages
    before = _dump(project)
    for content_type in (
        "multipart/form-data; boundary=b",
        "application/x-www-form-urlencoded",
        "text/plain",
    ):
        form = b"--b\r\nContent-Disposition: form-data; name=request\r\n\r\n%b\r\n--b--\r\n" % body
        for data in (body, b"request=" + body, form):
            reply = client.post(f"/test/{page}", data=data, content_type=content_type)
            assert reply.status_code == 200
    assert _dump(project) == before
    assert not list((project.directory / "spool").iterdir())


@settings(max_examples=int(os.environ.get("EXAMPLES", "60")))
@given(rpc=st.sampled_from([*SUBMIT_RPCS, *FILE_RPCS]), inner=_XML, signed=st.booleans())
def test_any_elements_are_answered_and_change_nothing_without_an_authenticator(
    pages, rpc, inner, signed
):
    project, client = pages
    page = PAGES[rpc in FILE_RPCS]
    auth = f"<authenticator>{project.authenticator}</authenticator>" if signed else ""
    before = [] if signed else _dump(project)
    reply = client.post(f"/test/{page}", data={"request": f"<{rpc}>{auth}{inner}</{rpc}>"})
    assert reply.status_code == 200
    assert f"</{rpc}>" in reply.text or "can't parse request message" in reply.text
    if not signed:
        assert _dump(project) == before
