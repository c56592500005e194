"""Progress: in order, by one thread at a time, to its end; and what it raises ends the work."""

import itertools
import threading
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.config.settings import StagingSettings
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.journal import Interrupted, Meter
from boinc_gahp.submit.types import Progress
from boinc_gahp.threads import in_parallel
from tests import faultproxy


@given(st.lists(st.integers(-50, 100), max_size=30), st.integers(0, 1000))
def test_what_is_done_never_falls_and_never_exceeds_the_total(counts, total):
    told = []
    meter = Meter(told.append)
    meter.begin("staging", total, "bytes")
    for count in counts:
        meter.add(count)
    meter.finish()
    done = [each.done for each in told]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == total
    assert len(done) == len(set(done))


def test_what_is_repeated_after_the_end_is_not_told_again(monkeypatch):
    monkeypatch.setattr("boinc_gahp.submit.journal._PAUSE", 0.0)
    told = []
    meter = Meter(told.append)
    meter.begin("staging", 2, "bytes")
    for count in (2, -1, 1):
        meter.add(count)
    meter.finish()
    assert [each.done for each in told] == [0, 2]


def test_one_thread_at_a_time_is_told_and_not_of_each_step(monkeypatch):
    monkeypatch.setattr("boinc_gahp.submit.journal._PAUSE", 3600.0)
    inside = threading.Lock()
    told = []

    def tell(progress):
        assert inside.acquire(blocking=False)
        told.append(progress)
        inside.release()

    meter = Meter(tell)
    meter.begin("reading", 4000, "bytes")
    in_parallel(lambda _: meter.add(1), range(4000), threads=8, name="count")
    meter.finish()
    assert told[-1] == Progress("reading", 4000, 4000, "bytes")
    assert len(told) <= 3


def test_after_one_thread_was_refused_every_other_ends_too():
    def tell(progress):
        if progress.done:
            raise ValueError("enough")

    meter = Meter(tell)
    meter.begin("reading", 1, "bytes")
    for _ in range(3):
        with pytest.raises(Interrupted):
            meter.add(1)
    with pytest.raises(Interrupted):
        meter.finish()


def test_a_submit_reads_then_stages_then_submits(site):
    told = []
    request = replace(site.batch(jobs=6, files=4), progress=told.append)
    site.proxy.fail("upload_files", faultproxy.lose_request())
    with site.context(staging=StagingSettings(files_per_post=2)) as context:
        submit(context, request)
        steps = [key for key, _ in itertools.groupby(told, lambda each: each.step)]
        assert steps == ["reading", "staging", "submitting"]
        nbytes = sum(path.stat().st_size for path in site.paths(request)[:4])
        assert [each for each in told if each.done == each.total] == [
            Progress("reading", nbytes, nbytes, "bytes"),
            Progress("staging", nbytes, nbytes, "bytes"),
            Progress("submitting", 6, 6, "jobs"),
        ]


@pytest.mark.parametrize("step", ["reading", "staging", "submitting"])
@pytest.mark.parametrize(
    "error", [BrokenPipeError("the terminal is gone"), KeyboardInterrupt(), ValueError("no")],
    ids=lambda error: type(error).__name__,
)  # fmt: skip
def test_what_progress_raises_ends_the_submit_and_another_one_completes_it(site, step, error):
    def tell(progress):
        if progress.step == step and (progress.done or step == "submitting"):
            raise error

    request = site.batch()
    with site.context() as context:
        with pytest.raises(type(error)) as raised:
            submit(context, replace(request, progress=tell))
        assert raised.value is error
        assert site.workunits(request) == []
        # It was no failure of the project's, which would have been asked again.
        assert site.proxy.count("submit_batch") == 0
        assert site.proxy.count("upload_files") <= 1
        submit(context, request)
    assert site.workunits(request) == site.names(request)
