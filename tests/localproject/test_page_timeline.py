"""What the page tells of time: when jobs ended, and a history in order."""

import re
import shlex
import time

import pytest

from boinc_gahp.localproject.server.application import make_app
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.localproject.web import job_queries, queries
from boinc_gahp.localproject.web.timeline import ends, timeline
from tests.localproject.bench import ERROR, OVER, SUCCESS, VALID
from tests.localproject.visitor import found, words

BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


def jobs(bench, batch_id, *ended, waiting=0, failed=0):
    """Make jobs that ended at these times, ``failed`` of them badly, each after ten seconds."""
    for number, moment in enumerate(ended):
        bench.workunit(f"over{number}", batch=batch_id)
        outcome = ERROR if number < failed else SUCCESS
        result = bench.result(
            OVER, outcome, sent_time=moment - 10, received_time=moment, batch=batch_id
        )
        so = {"error_mask": 2} if number < failed else {"canonical_resultid": result}
        bench.set("workunit", f"name = 'over{number}'", **so)
    for number in range(waiting):
        bench.workunit(f"waits{number}", batch=batch_id)


def ended(bench, batch_id):
    with bench.core.db.read() as connection:
        batch = queries.batch(connection, batch_id)
        assert batch is not None
        return ends(connection, [batch])


def of(bench, batch_id):
    with bench.core.db.read() as connection:
        batch = queries.batch(connection, batch_id)
        assert batch is not None
        curve = timeline(connection, batch)
    assert curve is not None
    return curve


def points(text):
    """Return the points of an outline."""
    pairs = (pair.split(",") for pair in text.split())
    return [(float(x), float(y)) for x, y in pairs]


@pytest.fixture
def batch(bench, visitor):
    """A batch that is a minute old and has no jobs yet."""
    made = visitor.batch("b")
    bench.set("workunit", batch=0)
    bench.set("batch", create_time=time.time() - 60)
    return made


def test_a_batch_ended_when_its_last_result_was_received_not_when_somebody_asked(
    bench, visitor, batch
):
    now = time.time()
    jobs(bench, batch, now - 40, now - 30, now - 20, failed=1)
    bench.set("batch", state=BatchState.COMPLETE, completion_time=now)
    assert of(bench, batch).ended == now - 20
    assert ended(bench, batch) == {batch: now - 20}
    assert "took 40 s" in visitor.text()
    assert re.search(r"Ended 2\d s ago ?, after 40 s", visitor.text(f"batches/{batch}"))


def test_a_late_result_of_a_job_that_is_done_does_not_end_it_again(bench, batch):
    now = time.time()
    jobs(bench, batch, now - 30)
    bench.result(OVER, SUCCESS, sent_time=now - 40, received_time=now - 5, batch=batch)
    assert ended(bench, batch) == {batch: now - 30}
    with bench.core.db.read() as connection:
        [line] = job_queries.jobs(connection, batch, 1, state="", part="")[0]
    assert line.end_time == now - 30


def test_the_curve_rises_from_nothing_to_all_jobs(bench, batch):
    now = time.time()
    jobs(bench, batch, *(now - 60 + second for second in range(1, 51)), failed=10)
    curve = of(bench, batch)
    done, failed = points(curve.done), points(curve.failed)
    for outline in (done, failed):
        xs, ys = [x for x, _ in outline[:-2]], [y for _, y in outline[:-2]]
        assert xs == sorted(xs)
        assert ys == sorted(ys, reverse=True)
        assert (xs[0], ys[0], xs[-1]) == (0, 20, 100)
    assert [outline[-3] for outline in (done, failed)] == [(100, 0), (100, 16)]


def test_a_batch_whose_jobs_were_all_aborted_ended_when_that_was_recorded(bench, batch):
    jobs(bench, batch, waiting=3)
    bench.set("workunit", error_mask=16)
    at = time.time() - 7
    bench.set("batch", state=BatchState.ABORTED, completion_time=at)
    curve = of(bench, batch)
    assert (curve.done, curve.failed, curve.ended) == ("", "", at)
    jobs(bench, batch, at - 20)
    assert of(bench, batch).ended == at
    assert ended(bench, batch) == {batch: at}


# The history of a job.


def told(visitor, job_id=1):
    """Return instance and first word of each event."""
    lines = (words(line) for line in found(visitor.page(f"jobs/{job_id}"), "//ol/li"))
    return [" ".join(line.split()[:2]) for line in lines]


def test_what_happens_in_the_same_second_is_told_in_its_order(bench, visitor):
    visitor.batch("b")
    bench.now = int(time.time()) + 1.1
    bench.set("workunit", create_time=int(bench.now), max_error_results=3)
    bench.transition()
    for host, status in ((1, 3), (2, 0)):
        bench.now += 0.1
        task = bench.send(host)
        bench.now += 0.1
        bench.answer(task, host, status=status)
        bench.now += 0.1
        bench.settle()
    assert told(visitor) == [
        "Job created",
        "_0 Sent",
        "_0 Reported:",
        "_1 Instance",
        "_1 Sent",
        "_1 Reported:",
        "_1 Chosen",
    ]


def test_a_result_that_comes_late_comes_after_the_choice(bench, visitor):
    visitor.batch("b")
    bench.now = time.time()
    bench.set("workunit", create_time=int(bench.now), target_nresults=2)
    bench.transition()
    first, second = bench.send(1), bench.send(2)
    bench.now += 1
    bench.answer(first, 1)
    bench.settle()
    bench.now += 1
    bench.answer(second, 2)
    bench.settle()
    assert [row["validate_state"] for row in bench.rows("SELECT * FROM result")] == [VALID] * 2
    assert told(visitor)[-3:] == ["_0 Reported:", "_0 Chosen", "_1 Reported:"]


# What to type, and where nothing is.


def test_the_page_shows_what_to_type(bench, visitor):
    path = bench.directory / "boinc_gahp.toml"
    path.write_text("[project]\n")
    export = f"export BOINC_GAHP_CONFIG={shlex.quote(str(path))}"
    assert f"{export} boinc_gahp batch submit uppercase" in visitor.text()
    batch_id = visitor.batch("b")
    assert f"{export} boinc_gahp batch list" in visitor.text()
    assert f"{export} boinc_gahp batch wait {batch_id}" in visitor.text(f"batches/{batch_id}")
    bench.now = time.time()
    bench.transition()
    bench.compute(b"ONE")
    bench.settle()
    assert f"boinc_gahp batch fetch {batch_id}" in visitor.text(f"batches/{batch_id}")


def test_a_path_in_ones_home_is_short_and_fits_a_shell(bench, visitor, monkeypatch):
    (bench.directory / "boinc_gahp.toml").write_text("[project]\n")
    monkeypatch.setenv("HOME", str(bench.directory.parent))
    assert f"export BOINC_GAHP_CONFIG=~/{bench.directory.name}/boinc_gahp.toml" in visitor.text()


def test_a_jobs_command_line_stands_at_its_head(visitor):
    visitor.batch("b", command_line="--sleep 0")
    [line] = found(visitor.page("jobs/1"), "//div[@class='head']/following-sibling::p[@id='ran']")
    assert words(line) == "uppercase --sleep 0"


def test_a_browser_gets_our_own_page_for_an_unknown_address_and_a_program_gets_apaches(
    bench, visitor
):
    for path in ("nosuch", "batches/x", "static/nosuch.css"):
        answer = visitor.get(path, Accept=BROWSER)
        assert answer.status_code == 404, path
        assert "There is nothing here" in answer.text
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
    for path in ("nosuch.php", "download/00/nosuch.txt"):
        assert "<h1>Not Found</h1>" in visitor.get(path, Accept=BROWSER).text
    assert "<h1>Not Found</h1>" in visitor.get("nosuch").text
    stranger = make_app(bench.core).test_client()
    strange = stranger.get("/test/nosuch", headers={"Accept": BROWSER})
    assert strange.status_code == 404
    assert "<h1>Not Found</h1>" in strange.text


def test_the_page_of_a_batch_with_failed_jobs_shows_how_to_see_and_repeat_them(
    bench, visitor, batch
):
    jobs(bench, batch, 20, 10, failed=1)
    bench.set("batch", state=BatchState.COMPLETE)
    for word in ("fetch", "logs", "retry"):
        assert f"boinc_gahp batch {word} {batch}" in visitor.text(f"batches/{batch}")
