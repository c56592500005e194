import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from boinc_gahp.config.settings import ProjectSettings, Settings
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.daemon._projects import Projects
from boinc_gahp.errors import ConfigError, LedgerError
from boinc_gahp.gahp.boinc_commands import SelectProject
from boinc_gahp.secret import Authenticator
from tests.daemon.stand_in import StandIn, StoodIn
from tests.helpers import wait_for

KEY = Authenticator("key-of-alice")
OTHER_KEY = Authenticator("key-of-bob")
MINE = ProjectSettings(ProjectUrl("https://a.example/x"), KEY, ca_bundle="/mine.pem")
OTHER = ProjectSettings(ProjectUrl("https://b.example/"), None, proxy="http://proxy:1")
SETTINGS = Settings(project=MINE, projects={"other": OTHER})


class Opener:
    """Opens stand-ins; ``problems`` are raised first."""

    opened = None  # no ledger

    def __init__(self):
        self.projects = []
        self.contexts = []
        self.problems = []

    def open(self, _settings, project):
        if self.problems:
            raise self.problems.pop(0)
        self.projects.append(project)
        self.contexts.append(StandIn())
        return self.contexts[-1]


@pytest.fixture
def opener():
    return Opener()


@pytest.fixture
def projects(opener):
    projects = StoodIn(lambda: SETTINGS, opener)
    yield projects
    projects.close()
    assert all(context.closed for context in opener.contexts)
    wait_for(
        lambda: not any(thread.name.startswith("settling") for thread in threading.enumerate()),
        "nothing is settled any more",
    )


@pytest.mark.parametrize(
    ("url", "proxy", "ca_bundle"),
    [
        ("https://a.example/x", None, "/mine.pem"),
        ("HTTPS://A.example/x/", None, "/mine.pem"),
        ("https://b.example", "http://proxy:1", None),
        ("https://c.example/", None, None),
    ],
)
def test_a_selected_project_keeps_its_settings(projects, opener, url, proxy, ca_bundle):
    projects.context(SelectProject(url, OTHER_KEY))
    (opened,) = opener.projects
    assert opened.url == url.lower().rstrip("/") + "/"
    assert (opened.authenticator, opened.proxy, opened.ca_bundle) == (OTHER_KEY, proxy, ca_bundle)


def test_one_context_serves_a_project_and_account(projects, opener):
    with ThreadPoolExecutor(8) as threads:
        contexts = set(threads.map(lambda _: projects.context(None), range(32)))
    assert len(contexts) == len(opener.projects) == 1
    assert projects.context(SelectProject("https://A.example/x/", KEY)) in contexts
    assert projects.context(SelectProject("https://a.example/x", OTHER_KEY)) not in contexts
    assert projects.context(SelectProject("https://a.example/", KEY)) not in contexts


def test_a_context_that_could_not_be_opened_is_tried_again(projects, opener):
    opener.problems = [LedgerError("the ledger cannot be on NFS: set [state] dir")]
    with pytest.raises(LedgerError, match="NFS"):
        projects.context(None)
    assert projects.context(None) is projects.context(None)


def test_settings_are_loaded_once_and_given_to_the_log_first():
    loaded = []

    def load():
        loaded.append("loaded")
        return SETTINGS

    projects = Projects(load, lambda _settings: loaded.append("log"))
    assert projects.limits.pending_requests == 1000
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: projects.settings(), range(8)))
    assert loaded == ["loaded", "log"]
    assert projects.limits is SETTINGS.limits


def test_trouble_while_settling_does_not_end_it(opener, monkeypatch, caplog):
    monkeypatch.setattr("boinc_gahp.daemon._projects.FIRST_RECONCILE", 0.01)
    monkeypatch.setattr("boinc_gahp.daemon._projects.RECONCILE_INTERVAL", 0.01)
    problems = [LedgerError("locked"), ZeroDivisionError("a bug")]
    context = StandIn()
    reconcile = context.reconcile

    def trouble():
        if problems:
            raise problems.pop(0)
        reconcile()

    context.reconcile = trouble
    projects = StoodIn(lambda: SETTINGS, context)
    projects.context(None)
    assert context.reconciled.wait(60)
    projects.close()
    assert "locked" in caplog.text
    assert "a bug" in caplog.text


def test_preparing_neither_waits_nor_fails(caplog):
    hold, tried = threading.Event(), threading.Event()

    def load():
        hold.wait(60)
        tried.set()
        raise ConfigError("no such setting")

    projects = StoodIn(load, Opener())
    projects.prepare()
    assert projects.limits.workers == 32
    hold.set()
    assert tried.wait(60)
    wait_for(lambda: "no such setting" in caplog.text, "the log tells")
