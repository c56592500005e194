"""What a process remembers of a project."""

import pytest

from boinc_gahp.errors import NotFound
from boinc_gahp.rpc.types import JobInfo
from boinc_gahp.submit import context as module
from boinc_gahp.submit.context import ProjectCache, Recent
from tests.fetch.jobs import templates
from tests.submit.scripted import Script, batch, error, job


def cache_of(script, templates_cached=300.0):
    return ProjectCache(script.project(), templates_cached)


def test_recent_drops_what_was_set_longest_ago():
    recent = Recent(2)
    for name, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        recent.set(name, value)
    assert [recent.get(name) for name in "abc"] == [3, None, 4]
    recent.drop("a")
    recent.drop("a")
    assert recent.get("a") is None


def test_a_view_that_is_good_is_not_asked_for_again():
    script = Script({"query_batch": batch(7, "b", 1, job(1, "b#1.0", 5))})
    cache = cache_of(script)
    for _ in range(3):
        view = cache.view("b", lambda view: "b#1.0" in view.jobs)
    assert view.jobs == {"b#1.0": JobInfo(1, "b#1.0", 5)}
    assert view.final
    assert script.count("query_batch") == 1
    assert cache.batch_of("b#1.0") == "b"
    assert cache.batch_of("c#1.0") is None


def test_a_retired_batch_is_forgotten():
    script = Script({"query_batch": batch(7, "b", 1, job(1, "b#1.0", 5))})
    cache = cache_of(script)
    cache.view("b", lambda _: True)
    cache.submitted.set("b", True)
    cache.forget_batch("b")
    cache.forget_batch("never heard of")
    assert cache.batch_of("b#1.0") is None
    assert not cache.submitted.get("b")


def test_memory_is_bounded_in_jobs(monkeypatch):
    monkeypatch.setattr(module, "MAX_JOBS", 10)

    def query_batch(asked):
        [name] = asked["batch_name"]
        return batch(7, name, 1, *(job(number, f"{name}#{number}") for number in range(4)))

    cache = cache_of(Script({"query_batch": query_batch}))
    for name in "abc":
        cache.view(name, lambda _: True)
    assert [cache.batch_of(f"{name}#0") for name in "abc"] == [None, "b", "c"]


@pytest.mark.parametrize(
    ("cached", "asked"),
    [pytest.param(300.0, 1, id="for five minutes"), pytest.param(0.0, 3, id="not at all")],
)
def test_templates_are_remembered_for_a_while(cached, asked):
    script = Script({"get_templates": templates("out")})
    cache = cache_of(script, templates_cached=cached)
    for _ in range(3):
        assert cache.templates("uppercase").output.files[0].open_name == "out"
    assert script.count("get_templates") == asked


def test_templates_that_cannot_be_had_are_asked_for_again():
    script = Script({"get_templates": error("app not found: x")})
    cache = cache_of(script)
    for _ in range(2):
        with pytest.raises(NotFound):
            cache.templates("x")
    assert script.count("get_templates") == 2


def test_a_canonical_instance_is_found_among_all():
    instances = "".join(
        f"<instance><name>j_{number}</name><id>{number}</id><state>Unsent</state></instance>"
        for number in range(3)
    )
    script = Script({"query_job": instances})
    cache = cache_of(script)
    assert cache.instance(JobInfo(1, "j", 2)).name == "j_2"
    assert cache.instance(JobInfo(1, "j", 9)) is None
    assert cache.instance(JobInfo(1, "j", 0)) is None


def test_a_failed_jobs_details_are_asked_for_once_a_job_that_runs_each_time():
    script = Script(
        {
            "query_batch": batch(
                7,
                "b",
                1,
                job(1, "failed", 0, "<error>x</error><status>error</status>"),
                job(2, "running", 0, "<status>in_progress</status>"),
                job(3, "done", 5, "<status>done</status>"),
            )
        }
    )
    cache = cache_of(script)
    for _ in range(3):
        failed = cache.failures(7, "failed")
        assert failed.errors == ("x",)
    assert script.count("query_batch") == 1
    for _ in range(2):
        assert cache.failures(7, "running") is not None
    assert cache.failures(7, "done") is None
    assert script.count("query_batch") == 4


def test_a_warning_is_given_once(caplog):
    cache = cache_of(Script())
    for name in ("a", "b", "a"):
        cache.warn_once(("topic", name), "About %s", name)
    assert [record.message for record in caplog.records] == ["About a", "About b"]
