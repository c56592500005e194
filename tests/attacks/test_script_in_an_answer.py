"""An attacker wants a script of theirs to run as the local project's page, in a user's browser."""

import html
import os
import re
from urllib.parse import quote

import pytest
import requests
from hypothesis import given, settings, strategies as st

from boinc_gahp.localproject.server.application import make_app

#: The same for a browser that shows XML.
IN_XML = '<x:script xmlns:x="http://www.w3.org/1999/xhtml">alert(1)</x:script>'
#: Whatever answers, and however: pages, RPCs, files, redirects, errors of ours and of the server.
ADDRESSES = (
    *(
        "",
        "nosuch",
        "static/page.js",
        "static/nosuch",
        "batches/99",
        "?token=x",
        "../",
        "../nosuch",
    ),
    *("download/a/nosuch", "download/a/b/c", "submit_rpc_handler.php", "job_file.php"),
    *("get_output.php", "get_output.php?cmd=x&auth_str=x"),
    "get_output.php?cmd=result_file&auth_str=x&result_name=x",
    "get_output.php?cmd=workunit_file&auth_str=x&wu_name=x&file_num=0",
)


@pytest.fixture(scope="module")
def client(project):
    return make_app(project.core).test_client()


def _guarded(headers, what):
    policy = headers.get("Content-Security-Policy", "")
    assert "default-src 'none'" in policy or "default-src 'self'" in policy, what
    assert "frame-ancestors 'none'" in policy, what
    assert "unsafe" not in policy, what
    assert headers.get("X-Content-Type-Options") == "nosniff", what
    assert headers.get("Referrer-Policy") in ("same-origin", "no-referrer"), what


@settings(max_examples=int(os.environ.get("EXAMPLES", "50")))
@given(name=st.text(st.characters(codec="utf-8"), min_size=1) | st.text("<>&\"'x/ ", min_size=1))
def test_no_name_at_all_comes_back_as_html(client, name):
    for kind, key in (("result_file", "result_name"), ("workunit_file", "wu_name")):
        asked = {"cmd": kind, "auth_str": "x", "file_num": "0", key: name}
        answer = client.get("/test/get_output.php", query_string=asked)
        if answer.mimetype == "text/html":
            assert re.fullmatch(r"(?s)[^<\"']*", answer.text)
            assert html.unescape(answer.text).endswith(name)
        else:
            assert answer.mimetype == "text/plain"
            assert answer.text.endswith(name)


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT", "OPTIONS"])
def test_every_answer_forbids_scripts_frames_and_guesses_at_its_type(project, method):
    with requests.Session() as session:
        for path in ADDRESSES:
            answer = session.request(
                method, project.url + path, timeout=20, allow_redirects=False, data={"x": "y"}
            )
            _guarded(answer.headers, f"{method} {path}: {answer.status_code}")


def test_a_form_that_another_site_sends_to_an_rpc_runs_nothing(project):
    for request in (IN_XML, f"<create_batch><app_name>{quote(IN_XML)}</app_name></create_batch>"):
        answer = requests.post(
            project.url + "submit_rpc_handler.php", data={"request": request}, timeout=20
        )
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "sandbox" in answer.headers["Content-Security-Policy"]
