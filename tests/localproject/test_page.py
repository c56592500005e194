"""What the project's page shows (BOINC's RemoteJobs, "Example web interface")."""

import hashlib
import re
import shlex
import time

import pytest
from lxml import html

from boinc_gahp.localproject.hosts import hosts
from boinc_gahp.localproject.states import (
    BatchState,
    ErrorMask,
    Outcome,
    ServerState,
    ValidateState,
)
from boinc_gahp.text import visible
from tests.localproject.visitor import found, words as plain

EVIL = "</title></pre><script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[31m\x7f"


def text_of(element):
    """Return what an element tells; a slow machine makes no difference."""
    return re.sub(r"\b(just now|\d+ s ago|in \d+ s)", "just now", plain(element))


def states_of(bench, visitor):
    """Make a batch with a job in each state; return its id. They are named for their states."""
    batch_id = visitor.batch("five", 5)
    bench.set("workunit", "1", max_error_results=0)
    bench.now = time.time()
    for number, name in enumerate(("aborted", "failed", "done", "running", "waiting"), 1):
        bench.set("workunit", f"id = {number}", name=name, name_key=name)
    bench.set("workunit", "id = 1", error_mask=ErrorMask.CANCELLED)
    bench.transition()
    bench.answer(bench.send(1), 1, status=3)
    bench.answer(bench.send(2), 2)
    assert bench.send(3) is not None
    bench.settle()
    return batch_id


def test_the_front_page_tells_how_each_batch_does(bench, visitor):
    states_of(bench, visitor)
    page = visitor.page()
    [card] = page.xpath("//*[@id='batch-1']")
    told = text_of(card)
    assert "five" in told
    assert "uppercase submitter just now" in told
    assert "1 done 2 failed 1 running 1 waiting" in told
    assert "60 %" in told
    widths = [float(part.get("width")) for part in card.xpath(".//rect")]
    assert widths == pytest.approx([20, 40, 20, 20])
    assert page.findtext(".//title") == "Batches · Local BOINC project"


def test_the_front_page_counts_all_jobs_that_are_not_retired(bench, visitor):
    visitor.batch("kept", 3)
    visitor.batch("gone", 4)
    bench.set("batch", "id = 2", state=BatchState.RETIRED)
    page = visitor.page()
    assert page.xpath("//*[@class='tile queued']/dd/text()") == ["3"]
    assert "gone" not in text_of(page)


def test_a_batch_page_lists_its_jobs_with_what_became_of_them(bench, visitor):
    batch_id = states_of(bench, visitor)
    page = visitor.page(f"batches/{batch_id}")
    rows = [text_of(row) for row in page.xpath("//tbody/tr")]
    assert rows == [
        "aborted failed it was aborted 0",
        "failed failed too many instances failed; exit status 3 h1 1 10 s just now",
        "done done h2 1 10 s just now",
        "running running h3 1",
        "waiting waiting 1",
    ]
    assert page.findtext(".//title") == "five · Local BOINC project"


def test_a_large_batch_comes_in_pages(visitor):
    visitor.batch("large", 250)
    answer = visitor.get("batches/1")
    assert len(answer.text) < 100_000
    page = html.fromstring(answer.text)
    assert len(found(page, "//tbody/tr")) == 100
    [more] = found(page, "//a[@rel='next']/@href")
    assert more == "/test/batches/1?page=2"
    last = visitor.page("batches/1?page=3")
    assert last.xpath("//tbody/tr/th/a/bdi/text()")[-1] == "large_249"
    assert "201–250 of 250" in text_of(last)


def test_a_job_page_tells_all_of_an_instance(bench, visitor):
    states_of(bench, visitor)
    page = visitor.page("jobs/3")
    [card] = page.xpath("//li[@id='instance-2']")
    facts = {text_of(div.find("dt")): text_of(div.find("dd")) for div in card.xpath("dl[1]/div")}
    assert facts.pop("Sent") == facts.pop("Reported") == "just now"
    assert facts.pop("Credit").startswith("0.")
    assert facts == {
        "Host": "h2",
        "Exit status": "0",
        "Run time": "10 s",
        "CPU time": "9 s",
    }
    assert "canonical" in text_of(card)
    assert f"out 3 bytes MD5 {hashlib.md5(b'OUT').hexdigest()}" in text_of(card)
    assert "in 3 bytes 900150983cd24fb0d6963f7d28e17f72.txt" in text_of(page)


def test_every_state_of_a_job_and_its_instances_is_told_in_words(bench, visitor):
    visitor.batch("b")
    bench.transition()
    for table, column, values in (
        ("result", "server_state", ServerState),
        ("result", "outcome", Outcome),
        ("result", "validate_state", ValidateState),
        ("workunit", "error_mask", ErrorMask),
    ):
        bench.set("result", server_state=ServerState.OVER, outcome=Outcome.SUCCESS, received_time=1)
        told = set()
        for value in values:
            bench.set(table, "1", **{column: value})
            told.add(text_of(visitor.page("jobs/1").xpath("//main")[0]))
        assert len(told) == len(values)


def test_names_and_stderr_are_shown_and_never_obeyed(bench, visitor):
    states_of(bench, visitor)
    bench.set("batch", name=EVIL)
    bench.set("workunit", "id = 2", name=EVIL)
    bench.set(
        "result", "workunitid = 2", name=EVIL, stderr_out=f"<stderr_txt>\n{EVIL}\n</stderr_txt>"
    )
    bench.set("host", "id = 3", domain_name=EVIL)
    bench.set("user", "name = 'submitter'", name=EVIL)
    shown = visible(EVIL)
    for path in ("", "batches/1", "jobs/2"):
        page = visitor.page(path)
        assert page.xpath("//script/@src") == ["/test/static/page.js"], path
        assert page.xpath("//script/text() | //img") == [], path
        assert shown in page.text_content(), path
    assert visitor.page("jobs/2").findtext(".//pre") == shown


def test_hosts_are_shown_with_their_work_and_their_behaviours(bench, visitor):
    states_of(bench, visitor)
    hosts.set_behaviours(bench.core.db, [hosts.parse_behaviour("fail=3x2")], host="h2")
    bench.set("host", "id = 6", active=0)
    page = visitor.page()
    told = {number: text_of(page.get_element_by_id(f"host-{number}")) for number in (1, 2, 3)}
    assert told[3].startswith("h3 running_0 for ")
    assert told[1] == "h1 idle"
    assert "fail=3x2" in told[2]
    assert "h6" not in text_of(page.xpath("//aside")[0])


def test_back_end_programs_are_shown_with_their_last_error(bench, visitor):
    trouble = {"error": "it broke", "error_time": time.time()}
    bench.insert("program", name="validator", handled=1234, **trouble)
    page = visitor.page()
    told = text_of(page.get_element_by_id("program-validator"))
    assert told == "validator 1,234 handled failed just now it broke"
    assert text_of(page.get_element_by_id("program-transitioner")) == "transitioner 0 handled"


def test_an_instance_has_the_address_that_it_has_on_other_projects(bench, visitor):
    states_of(bench, visitor)
    answer = visitor.get("result.php?resultid=2")
    assert answer.headers["Location"] == "/test/jobs/3#instance-2"
    missing = [f"result.php?resultid={number}" for number in ("99", "0", "-1", "x", str(10**30))]
    for path in ("batches/99", "jobs/99", "instances/9/outputs/0", *missing):
        answer = visitor.get(path)
        assert answer.status_code == 404, path
        assert "There is nothing here" in answer.text


def test_the_script_gets_the_changing_part_alone_and_only_when_it_has_changed(bench, visitor):
    batch_id = visitor.batch("b")
    bench.set("batch", create_time=time.time() - 100_000)
    path = f"batches/{batch_id}"
    answer = visitor.get(path, **{"X-Live": "1"})
    assert "<header" not in answer.text
    [live] = visitor.page(path).xpath("//*[@id='live']")
    assert text_of(html.fromstring(f"<div>{answer.text}</div>")) == text_of(live)
    again = {"X-Live": "1", "If-None-Match": answer.headers["ETag"]}
    assert visitor.get(path, **again).status_code == 304
    bench.set("workunit", error_mask=2)
    assert "1 failed" in visitor.get(path, **again).text


# A job's files.


def done(bench, visitor):
    """Make a batch of two jobs, and let hosts end them."""
    visitor.batch("b", 2)
    bench.transition()
    bench.compute(b"ONE", b"TWO")
    bench.settle()


def attachment(answer):
    """Return name and contents of a file that must be saved, not shown."""
    assert answer.status_code == 200, answer.text
    headers = answer.headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert int(headers["Content-Length"]) == len(answer.content)
    kind, _, name = headers["Content-Disposition"].partition("; ")
    assert kind == "attachment"
    return name, answer.content


def test_a_jobs_files_can_be_saved(bench, visitor):
    done(bench, visitor)
    [link] = found(visitor.page("jobs/2"), "//li[@id='instance-2']//ul/li/a/@href")
    answer = visitor.get(link.removeprefix("/test/"))
    assert attachment(answer) == ("filename=b_1_0_out", b"TWO")
    [link] = found(visitor.page("jobs/2"), "//aside//ul/li/a/@href")
    assert visitor.get(link.removeprefix("/test/")).content == b"abc"


def test_a_name_cannot_break_out_of_the_header(bench, visitor):
    done(bench, visitor)
    bench.set("result", "id = 1", name='../a"b\r\nSet-Cookie: x=y; é')
    name, _ = attachment(visitor.get("instances/1/outputs/0"))
    assert "filename*=UTF-8''.._a%22b__Set-Cookie%3A%20x%3Dy%3B%20%C3%A9_out" in name


def test_the_page_shows_what_to_type(bench, visitor):
    path = bench.directory / "boinc_gahp.toml"
    path.write_text("[project]\n")
    export = f"export BOINC_GAHP_CONFIG={shlex.quote(str(path))}"
    assert f"{export} boinc_gahp batch submit uppercase" in visitor.text()
    states_of(bench, visitor)
    assert f"{export} boinc_gahp batch list" in visitor.text()
    assert f"{export} boinc_gahp batch wait 1" in visitor.text("batches/1")
    bench.set("batch", state=BatchState.COMPLETE)
    for word in ("fetch", "logs"):
        assert f"boinc_gahp batch {word} 1" in visitor.text("batches/1")
