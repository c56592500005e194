"""What the page shows of a project's batches, jobs and outputs."""

import re
import time

import pytest
from lxml import html

from boinc_gahp.localproject.hosts import hosts
from boinc_gahp.localproject.states import BatchState, ErrorMask, ServerState
from boinc_gahp.text import visible
from tests.page.visitor import found, words as plain

EVIL = "</title></pre><script>alert(1)</script><img src=x onerror=alert(1)>\u202e"


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
    [row] = page.xpath("//*[@id='batch-0-1']")
    told = text_of(row)
    assert told.startswith("five uppercase running")
    assert "1 done 2 failed 1 running 1 waiting" in told
    widths = [float(part.get("width")) for part in row.xpath(".//rect")]
    assert widths == pytest.approx([20, 40, 20, 20])
    assert page.findtext(".//title") == "Batches · Local project"


def test_batches_that_are_retired_are_not_shown(bench, visitor):
    visitor.batch("kept", 3)
    visitor.batch("gone", 4)
    bench.set("batch", "id = 2", state=BatchState.RETIRED)
    [queued] = visitor.page().xpath("//*[@class='tile queued']/dd/text()")
    assert queued == "3"
    assert "gone" not in visitor.text()
    assert visitor.get("0/2").status_code == 404


def test_a_batch_page_lists_its_jobs_and_why_they_failed(bench, visitor):
    path = f"0/{states_of(bench, visitor)}"
    page = visitor.page(path)
    assert [text_of(row) for row in page.xpath("//tbody/tr")] == [
        "aborted failed",
        "failed failed exit status 3",
        "done done 9 s",
        "running running",
        "waiting waiting",
    ]
    told = text_of(page.get_element_by_id("reasons"))
    assert "1 × aborted aborted" in told
    assert "1 × exit status 3 failed" in told
    assert page.findtext(".//title") == "five · Local project"


def test_jobs_are_found_among_thousands_and_come_in_pages(bench, visitor):
    visitor.batch("large", 10_000)
    bench.set("workunit", "name IN ('large_77', 'large_7700')", error_mask=ErrorMask.CANCELLED)
    answer = visitor.get("0/1")
    assert len(answer.text) < 100_000
    page = html.fromstring(answer.text)
    assert len(found(page, "//tbody/tr")) == 100
    [more] = found(page, "//a[@rel='next']/@href")
    assert more.endswith("/0/1?page=2")
    last = visitor.page("0/1?page=100")
    assert last.xpath("//tbody/tr/th/a/bdi/text()")[-1] == "large_9999"
    assert "9,901–10,000 of 10,000" in text_of(last)
    assert "9,901–10,000 of 10,000" in visitor.text("0/1?page=101")
    assert "No job matches" in visitor.text("0/1?q=medium")
    names = visitor.page("0/1?state=failed").xpath("//tbody//bdi/text()")
    assert names == ["large_77", "large_7700"]
    assert "1–100 of 111" in visitor.text("0/1?q=LARGE_77")
    assert visitor.page("0/1?q=large_7700&state=failed").xpath("//tbody//bdi/text()") == names[1:]
    assert visitor.page("0/1?q=5").xpath("//tr[@id='job-5']")


def test_a_job_page_tells_all_of_its_attempts(bench, visitor):
    states_of(bench, visitor)
    page = visitor.page("0/1/3")
    [card] = page.xpath("//li[@id='instance-2']")
    facts = {text_of(div.find("dt")): text_of(div.find("dd")) for div in card.xpath("dl[1]/div")}
    assert facts.pop("Sent") == facts.pop("Reported") == "just now"
    assert facts.pop("Credit").startswith("0.")
    assert facts == {"Host": "h2", "Exit status": "0", "Run time": "10 s", "CPU time": "9 s"}
    assert "this one counts Completed and validated" in text_of(card)
    assert "This job failed: exit status 3." in visitor.text("0/1/2")
    assert "In progress" in visitor.text("0/1/4")
    assert "Unsent" in visitor.text("0/1/5")


def test_names_and_stderr_are_shown_and_never_obeyed(bench, visitor):
    states_of(bench, visitor)
    bench.set("batch", name=EVIL)
    bench.set("workunit", "id = 2", name=EVIL)
    bench.set(
        "result", "workunitid = 2", name=EVIL, stderr_out=f"<stderr_txt>\n{EVIL}\x1b\n</stderr_txt>"
    )
    bench.set("host", "id = 3", domain_name=EVIL)
    shown = visible(EVIL)
    for path in ("", "0/1", "0/1/2", "more/Hosts"):
        page = visitor.page(path)
        assert len(page.xpath("//script/@src")) == 1, path
        assert page.xpath("//script/text() | //img") == [], path
        assert shown in page.text_content(), path
    assert visitor.page("0/1/2").findtext(".//details/pre") == rf"{shown}\x1b"


def test_hosts_are_shown_with_their_work_and_their_behaviours(bench, visitor):
    states_of(bench, visitor)
    hosts.set_behaviours(bench.core.db, [hosts.parse_behaviour("fail=3x2")], host="h2")
    bench.set("host", "id = 6", active=0)
    told = visitor.text("more/Hosts")
    assert "h1 idle" in told
    assert "h2 idle fail=3x2" in told
    assert "h3 running" in told
    assert "running_0 for" in told
    assert "h6" not in told


def test_back_end_programs_are_shown_with_their_last_error(bench, visitor):
    bench.insert(
        "program", name="validator", handled=1234, error="it broke", error_time=time.time()
    )
    bench.made(batch=0)
    told = text_of(visitor.page("more/Back end"))
    assert "validator failed Handled 1,234 Failed just now Its last error it broke" in told
    assert "transitioner Handled 0" in told
    assert "Jobs without a batch 1 job: 1 waiting" in told


def test_what_is_not_there_is_said_to_be_missing(visitor):
    visitor.batch("b")
    for path in ("0/99", "9/1", "0/1/99", "0/1/1/outputs/0", "more/Nothing", "nothing"):
        answer = visitor.get(path)
        assert answer.status_code == 404, path
        assert "There is nothing here" in answer.text


def test_the_script_gets_the_changing_part_alone_and_only_when_it_has_changed(bench, visitor):
    visitor.batch("b")
    bench.set("batch", create_time=time.time() - 100_000)
    answer = visitor.get("0/1", **{"X-Live": "1"})
    assert "<header" not in answer.text
    [live] = visitor.page("0/1").xpath("//*[@id='live']")
    assert text_of(html.fromstring(f"<div>{answer.text}</div>")) == text_of(live)
    again = {"X-Live": "1", "If-None-Match": answer.headers["ETag"]}
    assert visitor.get("0/1", **again).status_code == 304
    bench.set("workunit", error_mask=2)
    assert "1 failed" in visitor.get("0/1", **again).text


def test_outputs_are_shown_if_they_are_texts_and_can_be_saved(bench, visitor):
    visitor.batch("b", 2)
    bench.transition()
    bench.compute("ünï".encode(), b"\x89PNG\0")
    bench.settle()
    assert "out 5 bytes ünï" in visitor.text("0/1/1/outputs")
    page = visitor.page("0/1/2/outputs")
    assert page.xpath("//main//li//pre") == []
    [link] = page.xpath("//a[@download]/@href")
    answer = visitor.get(link.partition("/0/")[1].lstrip("/") + link.partition("/0/")[2])
    headers = answer.headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"] == "attachment; filename=b_1_out"
    assert answer.content == b"\x89PNG\0"


def test_a_look_changes_nothing(bench, site, visitor):
    visitor.batch("b")
    bench.transition()
    bench.compute(b"ONE")
    bench.settle()
    bench.set("batch", expire_time=time.time() + 60)
    before = bench.rows("SELECT * FROM batch")[0]["expire_time"]
    for path in ("", "0/1", "0/1/1", "0/1/1/outputs", "0/1/1/outputs/0"):
        assert visitor.get(path).status_code == 200
    assert bench.rows("SELECT * FROM batch")[0]["expire_time"] == before
    assert {name.split("_")[0] for name in site.asked} <= {"query", "get", "ping"}


def test_a_name_cannot_break_out_of_the_header(bench, visitor):
    visitor.batch("b")
    bench.transition()
    bench.compute(b"ONE")
    bench.settle()
    bench.set("workunit", name='../a"b\r\nSet-Cookie: x=y; é')
    answer = visitor.get("0/1/1/outputs/0")
    assert "filename*=UTF-8''.._a%22b" in answer.headers["Content-Disposition"]
    assert "Set-Cookie" not in answer.headers


def test_the_page_shows_what_to_type(bench, visitor, monkeypatch):
    monkeypatch.setenv("HOME", str(bench.directory.parent))
    options = f"--config ~/{bench.directory.name}/boinc_gahp.toml"
    assert f"boinc_gahp batch submit APP --each '*.txt' --name first {options}" in visitor.text()
    states_of(bench, visitor)
    assert f"boinc_gahp batch list {options}" in visitor.text()
    assert f"boinc_gahp batch wait 1 {options}" in visitor.text("0/1")
    bench.set("batch", state=BatchState.COMPLETE)
    for word in ("fetch", "logs", "retry"):
        assert f"boinc_gahp batch {word} 1 {options}" in visitor.text("0/1")
    assert f"boinc_gahp batch logs 1 failed {options}" in visitor.text("0/1/2")


def test_attempts_that_fail_are_told_while_no_job_is_done(bench, visitor):
    visitor.batch("b")
    bench.transition()
    bench.answer(bench.send(1), 1, status=3)
    bench.transition()
    assert ServerState.UNSENT in [row["server_state"] for row in bench.rows("SELECT * FROM result")]
    told = visitor.text("0/1")
    assert "No job is done yet, and 1 attempt has failed, the last (job b_0): Error while" in told
