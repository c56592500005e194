"""The way in: from an address, from settings, and what is handed out at the top of the package."""

import inspect

import pytest

import boinc_gahp
from boinc_gahp import BatchState, Project
from boinc_gahp.api.request import Options
from boinc_gahp.errors import ConfigError, ProjectError, TransportError
from tests import faultproxy
from tests.api.conftest import QUICK, inline
from tests.helpers import at_once

URL = "https://boinc.example.edu/test/"


@pytest.fixture
def settings_file(tmp_path):
    """A file with two projects, and one that has no authenticator."""
    secret = tmp_path / "authenticator"
    secret.write_text("0123456789abcdef\n")
    secret.chmod(0o600)
    path = tmp_path / "boinc_gahp.toml"
    path.write_text(
        f'[project]\nurl = "{URL}"\nauthenticator_file = "authenticator"\nproxy = "http://p:1"\n'
        f'[projects.einstein]\nurl = "{URL}e/"\nauthenticator_file = "authenticator"\n'
        f'[projects.rosetta]\nurl = "{URL}r/"\n'
        f'[timeouts]\nconnect = 3\n[state]\ndir = "state"\ncache_dir = "cache"\n'
    )
    path.chmod(0o600)
    return path


def test_a_project_lists_its_batches_newest_first(site):
    ids = [site.batch(1).id for _ in range(3)]
    # The same second, or another: by time, then id.
    site.change("UPDATE batch SET create_time = 9e8 WHERE id = ?", ids[2])
    listed = site.project.batches()
    assert [batch.id for batch in listed] == [ids[1], ids[0], ids[2]]
    assert all(batch.project is site.project for batch in listed)


def test_a_ping_tells_whether_the_project_answers(site):
    site.project.ping()
    with site.down(), pytest.raises(ProjectError, match="the project is down"):
        site.open(retry=0).ping()


def test_the_web_rpcs_are_at_hand(site):
    batch = site.batch(2)
    assert [info.id for info in site.project.rpc.query_batches()] == [batch.id]
    assert site.project.url == site.proxy.url
    assert site.project.host in site.project.url
    contexts = at_once(lambda _: site.project.session.context, range(8))
    assert all(context is site.project.session.context for context in contexts)


def test_nothing_is_asked_after_the_end_and_closing_twice_is_fine(site):
    with site.open() as project:
        batch = site.batch(1, project=project)
    project.close()
    for ask in (project.ping, project.batches, batch.refresh, batch.abort, batch.retire):
        with pytest.raises(TransportError, match="the connection to it was closed"):
            ask()


def test_a_submit_returns_its_batch_and_a_plan_sends_nothing(site):
    jobs = inline("1", "2", "3")
    assert site.plan(jobs).is_good
    few, many = (site.project.estimate("uppercase", each) for each in (jobs[:1], 20 * jobs))
    assert 0 < few < many
    assert site.project.batches() == ()
    batch = site.project.submit(site.project.app("uppercase"), jobs, name=site.name)
    assert (batch.name, batch.njobs, batch.app_name) == (site.name, 3, "uppercase")
    assert site.submit(jobs).id == batch.id


def test_a_batch_is_not_looked_at_once_more_after_its_submit(site):
    # Whoever heard of an error would submit the jobs once more, under another name.
    site.proxy.fail("query_batch", faultproxy.status(503), times=None, skip=4)
    batch = site.submit(1, project=site.open(retry=0))
    site.proxy.heal()
    assert batch.state is BatchState.IN_PROGRESS
    shown = batch.name, batch.njobs, batch.info.create_time, batch.expire_time
    batch.refresh()
    assert shown == (batch.name, batch.njobs, batch.info.create_time, batch.expire_time)
    assert batch.njobs == 1


def test_a_repr_tells_which_project_and_no_secret(site):
    project = site.open()
    assert repr(project) == f"<Project {project.url} account {project.account}>"
    batch = site.batch(1)
    shown = [repr(project), repr(batch), str(vars(batch)), repr(project.session)]
    assert all(site.authenticator not in text for text in shown)


def test_settings_name_the_project(settings_file):
    with (
        Project.from_settings(config=settings_file) as first,
        Project.from_settings("einstein", config=settings_file, timeout="1min") as second,
    ):
        assert (first.url, second.url) == (URL, URL + "e/")
        assert repr(second).startswith("<Project 'einstein' ")
        assert first.session.project_settings.proxy == "http://p:1"
        assert second.session.project_settings.proxy is None
        assert second.session.settings.timeouts.connect == 3
        assert second.session.settings.timeouts.retry == 60
        assert first.account == second.account


def test_a_wrong_name_in_the_settings_gets_the_nearest(settings_file):
    with pytest.raises(ConfigError, match=r"einstein: .*, rosetta: .*mean einstein"):
        Project.from_settings("Einstien", config=settings_file)
    with pytest.raises(ConfigError, match=r"no authenticator for .* section \[projects\.ros"):
        Project.from_settings("rosetta", config=settings_file)


def test_a_user_without_a_home_needs_no_cache(site, monkeypatch, tmp_path):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "")
    with Project(site.proxy.url, site.authenticator) as project:
        project.ping()


def test_everything_at_the_top_of_the_package_is_there():
    for name in boinc_gahp.__all__:
        assert getattr(boinc_gahp, name) is not None
        assert name in dir(boinc_gahp)
    with pytest.raises(AttributeError, match="has no attribute 'Porject'"):
        _ = boinc_gahp.Porject


@pytest.mark.parametrize("name", ["submit", "submit_split", "plan", "estimate"])
def test_help_and_completion_see_the_keywords_of_a_submit(name, site):
    """Python's help, IPython and Jupyter read them off the signature."""
    found = inspect.signature(getattr(site.project, name)).parameters
    assert list(found) == ["app", "jobs", *Options.__annotations__]
    assert {found[each].kind for each in Options.__annotations__} == {
        inspect.Parameter.KEYWORD_ONLY
    }


# -- one project object for many threads


def test_many_threads_watch_one_batch_while_others_refresh_it(site):
    batch = site.batch(20)
    names = [job.name for job in batch.jobs()]

    def wait():
        return batch.wait(timeout=60, poll=QUICK).state

    def refresh():
        while not batch.is_over:
            assert 0 <= batch.refresh().nover <= 20
            assert repr(batch)

    def abort():
        for start in range(0, 20, 5):
            site.open().batch(batch.id).abort(names[start : start + 5])

    ends = at_once(lambda act: act(), [wait, wait, refresh, refresh, abort])
    # All of its jobs are over now, so the project counts the batch as complete.
    assert ends[:2] == [BatchState.COMPLETE] * 2
    assert batch.nerror_jobs == 20
