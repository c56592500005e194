"""Fixtures that tests of every room share."""

import os
import signal
import sys
import threading

import pytest
from hypothesis import settings

from boinc_gahp import secret
from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from tests.containers_engine import engine  # noqa: F401  (a fixture)
from tests.rpc.scripted import Scripted

# How long an example takes says more of what else the machine does than of the code. The examples
# that all tests together can have in a few minutes; EXAMPLES=1000 looks longer.
settings.register_profile(
    "untimed", deadline=None, max_examples=int(os.environ.get("EXAMPLES", "30"))
)
settings.load_profile("untimed")

#: The files that take longest by the clock. One of them begun at the end would keep all waiting.
LONG = (
    *("test_demo", "test_console", "test_histories", "test_submit_faults", "test_pipes"),
    *("test_fetching", "test_process", "test_sending", "test_submit", "test_frozen_by_a_reply"),
    *("test_completion", "test_faults", "test_following", "test_process_blah", "test_main"),
    *("test_local_project_stories", "test_pipes_blah", "test_batch_splitting"),
    *("test_submit_killed", "test_fetch_faults", "test_bench", "test_killed"),
    *("test_boinc_submit", "test_submission", "test_batch", "test_finding"),
    *("test_fetch", "test_jobs"),
)

#: The audit events of starting a program or another process.
STARTS = frozenset({"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"})


def _fail_at_a_start(event, _arguments):
    # Other threads are the local project's volunteers, who run jobs.
    if event in STARTS and threading.current_thread() is threading.main_thread():
        pytest.fail("a test that starts a program needs the mark pytest.mark.processes")


def pytest_make_parametrize_id(val):
    """Shorten what would be megabytes of a name, which each of pytest's processes would get."""
    if isinstance(val, str | bytes) and len(val) > 60:
        return f"{val[:20]!r}… of {len(val):,}"
    return None


@pytest.fixture(scope="session", autouse=True)
def _no_processes(request):
    """Let a test fail that starts a program, in the step that leaves such tests out."""
    if "not processes" in request.config.option.markexpr:
        sys.addaudithook(_fail_at_a_start)


@pytest.fixture(scope="session", autouse=True)
def _usual_signals():
    """Let what tests start be interrupted, though the tests themselves run in the background.

    nohup ignores SIGHUP, and a shell's & SIGINT; whatever is started inherits that.
    """
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


@pytest.fixture(scope="module", autouse=True)
def _own_secrets():
    """Have what is kept out of texts be a module's own: some have odd authenticators."""
    before = dict(secret._authenticators)
    yield
    secret._authenticators.clear()
    secret._authenticators.update(before)


@pytest.fixture(scope="session", autouse=True)
def _own_directories(tmp_path_factory):
    """Keep tests, and what they start, from the settings, logs and ledger of who runs them.

    Where there is a proxy, what packages come with goes through it, and nothing of this machine.
    """
    base = tmp_path_factory.mktemp("xdg")
    before = dict(os.environ)
    for kind in ("CONFIG", "STATE", "CACHE", "DATA"):
        os.environ[f"XDG_{kind}_HOME"] = str(base / kind.lower())
    os.environ["XDG_CONFIG_DIRS"] = str(base / "site")
    os.environ.pop("BOINC_GAHP_CONFIG", None)
    if any(name.lower().endswith("_proxy") for name in before):
        direct = [os.environ.pop(name, "") for name in ("NO_PROXY", "no_proxy")]
        os.environ["no_proxy"] = ",".join(filter(None, [*direct, "127.0.0.1", "localhost"]))
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def server():
    """A web server that answers as a test tells it."""
    with Scripted() as found:
        yield found


def pytest_collection_modifyitems(items):
    """Begin with the files that take longest."""
    places = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path.stem, len(LONG)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Make what a test printed fit to be sent from one pytest process to another.

    Names with bytes that are not UTF-8 stand in logs on purpose; xdist cannot send them.
    """
    report = yield
    report.sections = [
        (title, text.encode("utf-8", "backslashreplace").decode())
        for title, text in report.sections
    ]
    return report


@pytest.fixture(scope="module")
def local_project(tmp_path_factory):
    """A project whose volunteers sleep, shared by a module; PHP's messages are in its replies."""
    directory = tmp_path_factory.mktemp("project")
    with LocalProject(directory, hosts=2, php=STOCK) as project:
        project.pause_volunteers()
        yield project


@pytest.fixture(scope="module")
def container_project(engine, tmp_path_factory):  # noqa: F811  (the fixture)
    """A project with an app for containers, and volunteers that have an engine."""
    with LocalProject(tmp_path_factory.mktemp("project"), hosts=4, php=STOCK) as project:
        project.add_container_app("docker")
        yield project
