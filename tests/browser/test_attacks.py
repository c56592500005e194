"""What a page of another site tries with a user's browser, which has opened the page."""

from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import pytest

from boinc_gahp.cli.local_project import local_page
from boinc_gahp.localproject.backend.create_work import NewJob, stage_file
from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.helpers import served, wait_for
from tests.localproject.batches import made_batch

#: As a page of boinc_gahp's, it would read a batch of the user's; it even knows the address.
_STEAL = """
document.title = 'it runs';
fetch('{page}0/{batch}').then(answer => answer.text()).then(page => {
  document.title = 'it has read ' + page.length;
});
"""


@pytest.fixture
def project(tmp_path):
    with LocalProject(tmp_path / "p", hosts=0, php=STOCK) as project:
        yield project


@pytest.fixture
def batch(project):
    """A batch of the submitter's, and the address of the page that shows it."""
    file = stage_file(project.core, b"x", "x.dat")
    batch_id = made_batch(project.core, "wanted", [NewJob(name="job", files=(file,))])
    with local_page(project) as address:
        yield batch_id, address


@pytest.fixture
def elsewhere(tmp_path):
    """Another site: where its pages lie, and its address."""
    pages = tmp_path / "elsewhere"
    pages.mkdir()
    with served(pages) as address:
        yield pages, address


def _link(arguments):
    def page(url, script):
        address = f"{url}get_output.php?file_num=0&auth_str=x&{arguments}"
        script = quote(f"<script>{script}</script>")
        return f"<script>location = {address + script!r}</script>", "get_output.php"

    return page


def _form(url, script):
    named = f'<x:script xmlns:x="http://www.w3.org/1999/xhtml">{escape(script)}</x:script>'
    request = f"<create_batch><app_name>{escape(named)}</app_name></create_batch>"
    return (
        f'<form method="post" action="{url}submit_rpc_handler.php">'
        f'<input name="request" value={quoteattr(request)}></form>'
        "<script>document.forms[0].submit()</script>"
    ), "submit_rpc_handler.php"


@pytest.mark.parametrize(
    "lure",
    [_link("cmd=result_file&result_name="), _link("cmd=workunit_file&wu_name="), _form],
    ids=["link to a result", "link to a workunit", "form sent to an RPC"],
)
def test_what_another_site_leads_to_reads_nothing_of_the_page(
    browser, project, batch, elsewhere, lure
):
    batch_id, shown = batch
    browser.driver.get(shown)
    wait_for(lambda: "wanted" in browser.driver.page_source, "the front page")
    pages, at = elsewhere
    script = _STEAL.replace("{page}", shown).replace("{batch}", str(batch_id))
    page, there = lure(project.url, script)
    (pages / "index.html").write_text(f"<!DOCTYPE html><title>Kittens</title>{page}")
    browser.driver.get(at)

    def address():
        # The document lets no script run that could tell; the protocol asks the browser.
        return str(browser.command("DOM.getDocument")["root"]["documentURL"])

    wait_for(lambda: address().startswith(f"{project.url}{there}"), f"{there} in the browser")
    title = browser.driver.title
    browser.driver.get(f"{shown}0/{batch_id}")
    assert "it " not in title, title
    assert "wanted" in browser.driver.page_source
    browser.complaints()  # The console tells of scripts that were not allowed.
