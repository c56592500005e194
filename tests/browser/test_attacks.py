"""What a page of another site tries with a user's browser, which has opened the project's page."""

import functools
import http.server
import threading
from urllib.parse import quote

import pytest

from boinc_gahp.localproject.backend.create_work import NewJob
from boinc_gahp.localproject.backend.staging import stage_file
from boinc_gahp.localproject.php import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.helpers import wait_for
from tests.localproject.visitor import made_batch

#: As a page of the project's, it would read a batch of the user's.
_STEAL = """
document.title = 'it runs';
fetch('/test/batches/{batch}').then(answer => answer.text()).then(page => {
  document.title = 'it has read ' + page.length;
});
"""


@pytest.fixture
def project(tmp_path):
    with LocalProject(tmp_path / "p", hosts=0, php=STOCK) as project:
        yield project


@pytest.fixture
def batch(project):
    """A batch of the submitter's."""
    file = stage_file(project.core, b"x", "x.dat")
    return made_batch(project.core, "wanted", [NewJob(name="job", files=(file,))])


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def elsewhere(tmp_path):
    """Another site: where its pages lie, and its address."""
    pages = tmp_path / "elsewhere"
    pages.mkdir()
    handler = functools.partial(_Quiet, directory=str(pages))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield pages, f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def _open(browser, project):
    browser.driver.get(project.page)
    wait_for(lambda: browser.driver.current_url == project.url, "the front page")


def _leads_to(browser, elsewhere, page, address):
    """Visit a page of the other site, and wait until the browser is where it leads to."""
    pages, at = elsewhere
    (pages / "index.html").write_text(f"<!DOCTYPE html><title>Kittens</title>{page}")
    browser.driver.get(at)
    # The document itself does not let scripts run that could tell; the protocol asks the browser.
    wait_for(lambda: _document(browser).startswith(address), f"{address} in the browser")


def _document(browser):
    root = browser.command("DOM.getDocument")["root"]
    return str(root["documentURL"])


def _nothing_ran(browser, project, batch):
    """Nothing ran, and the user can still read the batch."""
    title = browser.driver.title
    browser.driver.get(f"{project.url}batches/{batch}")
    assert "it " not in title, title
    assert "wanted" in browser.driver.page_source
    browser.complaints()  # The console tells of scripts that were not allowed.


@pytest.mark.parametrize(
    "query",
    [
        "cmd=result_file&file_num=0&auth_str=x&result_name=",
        "cmd=workunit_file&file_num=0&auth_str=x&wu_name=",
    ],
    ids=["result", "workunit"],
)
def test_a_link_with_a_script_in_it_reads_nothing_of_the_page(
    browser, project, batch, elsewhere, query
):
    _open(browser, project)
    script = quote(f"<script>{_STEAL.replace('{batch}', str(batch))}</script>")
    address = f"{project.url}get_output.php?{query}{script}"
    page = f"<script>location = {address!r}</script>"
    _leads_to(browser, elsewhere, page, f"{project.url}get_output.php")
    _nothing_ran(browser, project, batch)


def test_a_form_sent_to_an_rpc_reads_nothing_of_the_page(browser, project, batch, elsewhere):
    _open(browser, project)
    steal = _STEAL.replace("{batch}", str(batch)).replace("&", "&amp;").replace(">", "&gt;")
    named = f'<x:script xmlns:x="http://www.w3.org/1999/xhtml">{steal}</x:script>'
    named = named.replace("&", "&amp;").replace("<", "&lt;")
    request = f"<create_batch><app_name>{named}</app_name></create_batch>"
    value = request.replace("&", "&amp;").replace('"', "&quot;")
    address = f"{project.url}submit_rpc_handler.php"
    page = (
        f'<form method="post" action="{address}"><input name="request" value="{value}"></form>'
        "<script>document.forms[0].submit()</script>"
    )
    _leads_to(browser, elsewhere, page, address)
    _nothing_ran(browser, project, batch)
