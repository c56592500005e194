"""``back-end.rst``, "Assimilator", and handlers that go wrong.

A handler of these tests writes what it was given into a file beside it, a line a call.
"""

import pytest

from boinc_gahp.localproject.states import AssimilateState, ErrorMask, FileDeleteState
from tests.localproject.on_host import out

READY, DONE = AssimilateState.READY, AssimilateState.DONE

HANDLER = """
from pathlib import Path

def handle(job, canonical, instances):
    text = canonical.file("out").path.read_text() if canonical else f"error {job.error_mask:d}"
    seen = "".join(f" {one.name}={one.outcome.name}" for one in instances)
    with (Path(__file__).parents[1] / "calls").open("a") as file:
        file.write(f"{job.app_name} {job.name} {text}{seen}" + chr(10))
    MORE
"""


def use(bench, more=""):
    """Give the app a handler; ``more`` is what else it does."""
    bench.module("mine", HANDLER.replace("MORE", more))
    bench.set("app", "id = 1", assimilator="mine:handle")


def calls(bench):
    path = bench.directory / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_the_handler_gets_the_canonical_result_and_all_instances(bench):
    use(bench)
    bench.made(target_nresults=2)
    tasks = [bench.send(1), bench.send(2)]
    bench.answer(tasks[0], 1, status=7)
    bench.answer(tasks[1], 2, files={"out": b"good"})
    bench.settle()
    assert calls(bench) == ["uppercase w good w_0=CLIENT_ERROR w_1=SUCCESS w_2=DIDNT_NEED"]


def test_a_handler_that_raises_is_called_again_later_with_the_files_still_there(bench, caplog):
    use(bench, "if job.name == 'bad': raise RuntimeError('no space')")
    bench.outputs(out("out"))
    for name in ("bad", "good"):
        bench.finished(name)
    bench.settle()
    assert bench.column("workunit", "assimilate_state") == [READY, DONE]
    assert bench.results("file_delete_state") == [FileDeleteState.INIT, FileDeleteState.DONE]
    assert bench.core.upload.exists(f"bad_0_r{bench.results('random')[0]}_0")
    assert bench.trouble("assimilator") == (
        "the assimilator 'mine:handle' raised RuntimeError: no space "
        "(workunit bad, tried again after 10 s)"
    )
    assert "no space" in caplog.text
    use(bench, "return False")
    bench.now += 10
    bench.settle()
    assert len(calls(bench)) == 3
    assert bench.results("file_delete_state") == [FileDeleteState.DONE] * 2


@pytest.mark.parametrize(
    ("kind", "what"),
    [("async def", "1 / 0"), ("def", "yield 1"), ("async def", "yield 1")],
    ids=["async", "generator", "async generator"],
)
def test_a_handler_that_did_not_run_is_an_error(bench, kind, what):
    use(bench)
    bench.module("mine", f"{kind} handle(job, canonical, instances):\n    {what}\n")
    bench.finished()
    bench.assimilate()
    assert bench.wu["assimilate_state"] == READY
    told = "expected a plain function, without async and without yield"
    assert told in bench.trouble("assimilator")


def test_a_canonical_result_that_comes_during_a_call_is_handed_over(bench):
    use(bench)
    bench.finished()
    bench.set("workunit", canonical_resultid=0, error_mask=ErrorMask.CANCELLED)
    source = (bench.directory / "modules" / "mine.py").read_text()
    bench.module(
        "mine",
        f"{source}    import sqlite3\n"
        "    with sqlite3.connect(Path(__file__).parents[1] / 'project.sqlite') as connection:\n"
        "        connection.execute('UPDATE workunit SET canonical_resultid = 1')\n"
        "    connection.close()\n",
    )
    bench.assimilate()
    assert bench.wu["assimilate_state"] == READY
    use(bench)
    bench.assimilate()
    assert calls(bench)[1] == "uppercase w OUT w_0=SUCCESS"
    assert bench.wu["assimilate_state"] == DONE


def test_an_app_whose_handler_was_taken_away_does_not_wait(bench):
    use(bench, "1 / 0")
    bench.finished()
    bench.assimilate()
    bench.set("app", "id = 1", assimilator="")
    assert bench.assimilate() == 1
    assert bench.wu["assimilate_state"] == DONE
