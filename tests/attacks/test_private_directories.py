"""What a neighbour on a submit node might do with directories for users' state.

Where two users are needed, the tests run as root, who can be both; each kind of refusal is also
seen by whoever runs them.
"""

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from shlex import quote

import pytest

from boinc_gahp import logs
from boinc_gahp.cli.check.checks import Level, check_directories
from boinc_gahp.config.settings import Logging, ProjectSettings, Settings, State
from boinc_gahp.config.urls import ProjectUrl
from boinc_gahp.errors import LedgerError, StagingError
from boinc_gahp.fetch._placed import PlacedFiles
from boinc_gahp.files import make_private_directory, user_name, who_else_can_write
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.localproject.errors import LocalProjectTrouble
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.submit.digests import Digests
from boinc_gahp.submit.published import Published
from tests.attacks.users import ALICE, BOB, ME, become, environment, needs_root, ping, run_as
from tests.cli.conftest import COMMAND
from tests.documents.examples import examples
from tests.helpers import ran


@pytest.fixture
def node():
    """A directory that every user can go into, with alice's home in it."""
    node = Path(tempfile.mkdtemp(prefix="boinc_gahp-node-", dir="/tmp"))
    try:
        node.chmod(0o755)
        (node / "home").mkdir()
        os.chown(node / "home", ALICE, ALICE)
        yield node
    finally:
        shutil.rmtree(node)


def directory(path, mode=0o700):
    path.mkdir()
    path.chmod(mode)
    return path


def of_alice(node, state):
    """Return alice's environment, with a settings file that is root's."""
    settings = node / "boinc_gahp.toml"
    settings.write_text(
        f'[project]\nurl = "http://127.0.0.1:9/test/"\nauthenticator_file = "none"\n'
        f'[timeouts]\nretry = 0\n[state]\ndir = "{node}/shared/{state}"\n'
    )
    return environment(node / "home", settings)


def check(node, state="alice"):
    """Return what boinc_gahp check tells alice."""
    return run_as(ALICE, COMMAND, "check", cwd=node, env=of_alice(node, state))[1]


def serve(node, state="alice"):
    """Return what a daemon of alice's says on its stderr."""
    return ping(of_alice(node, state), node, *become(ALICE))[1]


def as_user(uid, script, *arguments):
    status, _, errors = run_as(uid, "/bin/sh", "-euc", script, "sh", *arguments)
    assert status == 0, errors


@pytest.mark.processes
@needs_root
@pytest.mark.parametrize("name", ["boinc_gahp.log", "ledger.sqlite", "manager.lock"])
def test_destroy_a_file_by_a_state_directory_made_for_its_owner(node, name):
    precious = node / "home" / "precious"
    precious.write_text("precious")
    os.chown(precious, ALICE, ALICE)
    directory(node / "shared", 0o1777)
    script = 'umask 0; mkdir "$1/alice"; ln -s "$2" "$1/alice/$3"'
    as_user(BOB, script, node / "shared", precious, Path(name))
    errors = serve(node)
    points = check(node)
    said = f"the directory {node}/shared/alice belongs to user {BOB}, not to {ALICE}"
    mend = f"install -d -m 700 -o {ALICE} {node}/shared/alice"
    assert said in errors
    assert points.count(said) == points.count(mend) == 2  # of the log, and of the ledger
    assert precious.read_text() == "precious"
    assert os.listdir(node / "shared/alice") == [name]  # noqa: PTH208
    # What it says does mend it.
    command = points.partition("have root run: ")[2].partition("; or set")[0]
    assert ran("/bin/sh", "-c", command).returncode == 0
    assert f"ok       ledger: {node}/shared/alice/ledger.sqlite" in check(node)
    assert precious.read_text() == "precious"


@pytest.mark.processes
@needs_root
def test_keep_users_from_directories_that_an_admin_made_by_the_recipe(node):
    [recipe] = [
        each.text
        for each in examples("docs/htcondor-admins.rst")
        if (each.marker or "").endswith(Path(__file__).name)
    ]
    assert "/var/lib/boinc_gahp" in recipe
    assert "alice bob" in recipe
    # Without it, or below a directory of root's alone, users are told what is missing.
    mend = f"have root run: install -d -m 700 -o {ALICE} {node}/shared/{ALICE}; or set"
    assert check(node, "{user}").count(f"(Permission denied): {mend}") == 2
    directory(node / "shared")
    assert check(node, "{user}").count(f": let {ALICE} enter {node}/shared, and {mend}") == 2
    there = recipe.replace("/var/lib/boinc_gahp", f"{node}/shared")
    script = there.replace("alice bob", f"{ALICE} {BOB}")
    assert ran("/bin/sh", "-euc", script).returncode == 0
    state = node / "shared" / str(ALICE)
    assert serve(node, "{user}") == ""
    state.chmod(0o755)
    points = check(node, "{user}")
    assert f"ok       ledger: {state}/ledger.sqlite" in points
    assert f"ok       log: {state}/boinc_gahp.log" in points
    files = list(state.iterdir())
    assert {path.name for path in files} >= {"ledger.sqlite", "boinc_gahp.log"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)


@pytest.mark.processes
@needs_root
def test_have_programs_run_by_a_project_made_for_its_owner(node):
    theirs = node / "theirs"
    theirs.mkdir()
    os.chown(theirs, BOB, BOB)
    as_user(BOB, '"$1" local-project init "$2"; chmod -R a+rwX "$2"', COMMAND, theirs)
    for action in ("init", "run"):
        words = (COMMAND, "local-project", action, theirs)
        status, _, errors = run_as(ALICE, *words, env=of_alice(node, "alice"))
        assert status == 1
        assert f"the directory {theirs} belongs to user {BOB}, not to {ALICE}" in errors


# -- as seen by whoever runs the tests

NOT_FOLLOWED = "is a symbolic link: it is not followed"


def ledger_refused(state):
    with pytest.raises(LedgerError) as refused:
        Ledger(state / "ledger.sqlite")
    return str(refused.value)


def lock_of(state):
    return AccountLock(state, "https://boinc.example.edu/", "account")


def lock_refused(state):
    with pytest.raises(LedgerError) as refused:
        lock_of(state).try_acquire()
    return str(refused.value)


def log_refused(capfd, **settings):
    assert logs.start(Settings(**settings)) is None
    return capfd.readouterr().err


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o757])
def test_put_files_into_a_state_directory_that_everyone_can_write(mode, tmp_path, capfd, caplog):
    state = directory(tmp_path / "state", mode)
    told = (
        f"the directory {state} can be written by everyone: make sure that everything in it "
        f"belongs to {ME}, and run: chmod go-w {quote(str(state))}"
    )
    assert told in ledger_refused(state)
    assert told in lock_refused(state)
    PlacedFiles(state).is_made(("key",), state.stat())
    Digests(state).of([__file__])
    assert caplog.text.count(told) >= 2
    assert not [*state.iterdir()]
    state.chmod(0o755)
    log = directory(state / "log", 0o777) / "x"
    told = log_refused(capfd, logging=Logging(file=str(log)))
    assert "log can be written by everyone" in told
    Ledger(state / "ledger.sqlite").close()


@pytest.mark.parametrize(
    "name",
    [
        *("ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", "ledger.sqlite-journal"),
        *("boinc_gahp.log", "boinc_gahp.log.lock", "manager"),
        *("placed.sqlite", "digests.sqlite"),
    ],
)
def test_have_a_file_written_by_a_link_in_a_state_directory(name, tmp_path, capfd, caplog):
    state = directory(tmp_path / "state")
    precious = tmp_path / "precious"
    precious.write_text("precious\n" * 100)
    planted = lock_of(state).path if name == "manager" else state / name
    planted.symlink_to(precious)
    if name.startswith("ledger"):
        assert NOT_FOLLOWED in ledger_refused(state)
    elif name == "manager":
        assert NOT_FOLLOWED in lock_refused(state)
    elif name.startswith("boinc_gahp.log"):
        logging = Logging(max_bytes=10 if name.endswith("lock") else 10**6)
        try:
            logs.start(Settings(logging=logging, state=State(state)))
            logs.log.warning("one")
            logs.log.warning("two")
        finally:
            logs.stop()
        assert NOT_FOLLOWED in capfd.readouterr().err
    else:
        with closing(PlacedFiles(state)) as placed:
            placed.is_made(("key",), state.stat())
        Digests(state).of([__file__])
        assert NOT_FOLLOWED in caplog.text
    assert precious.read_text() == "precious\n" * 100
    assert planted.is_symlink()


@needs_root
def test_have_published_files_put_where_a_neighbour_can_change_them(node):
    shared = directory(node / "shared", 0o1777)
    theirs = directory(shared / user_name(os.geteuid()), 0o777)
    os.chown(theirs, BOB, BOB)
    url = ProjectUrl("http://127.0.0.1:9/test/")
    project = ProjectSettings(url, publish_directory=str(shared), publish_url=url)
    with pytest.raises(StagingError, match=r"belongs to user|can be written by|can write the"):
        Published(Settings(), project, "").probe()
    assert list(theirs.iterdir()) == []


@pytest.mark.parametrize("mode", [0o1777, 0o700])
@pytest.mark.parametrize("kind", ["hard link", "pipe", "device"])
def test_have_the_log_written_into_what_is_no_log(kind, mode, tmp_path, capfd):
    there = directory(tmp_path / "logs", mode)
    precious, path = tmp_path / "precious", there / "me.log"
    precious.write_text("precious")
    reader = None
    if kind == "hard link":
        os.link(precious, path)
    elif kind == "pipe":
        os.mkfifo(path)
        reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    else:
        path = Path("/dev/null")
    logging = Logging(file=str(path))
    said = "has other names, too" if kind == "hard link" else "is not an ordinary file"
    assert said in log_refused(capfd, logging=logging).replace("is a file that ", "")
    point = next(check_directories(Settings(logging=logging)))
    assert point.level is Level.FAILED
    assert point.text.startswith(f"log: {str(path)!r}")
    assert precious.read_text() == "precious"
    if reader is not None:
        os.close(reader)
    try:
        assert logs.start(Settings(logging=Logging(file=str(there / "other.log")))) is not None
    finally:
        logs.stop()


@needs_root
def test_have_the_log_written_into_a_file_of_another_user(tmp_path, capfd):
    path = tmp_path / "me.log"
    path.write_text("bob's")
    os.chown(path, BOB, -1)
    told = log_refused(capfd, logging=Logging(file=str(path)))
    assert f"belongs to user {BOB}, not to {ME}" in told
    assert path.read_text() == "bob's"


@pytest.mark.parametrize("by_link", [False, True])
def test_replace_a_state_directory_whose_parent_everyone_can_write(by_link, tmp_path, capfd):
    above = tmp_path / "above"
    (above / "mine" / "state").mkdir(parents=True)
    state = above / "mine" / "state"
    if by_link:
        state = tmp_path / "link"
        state.symlink_to(above / "mine" / "state")
    told = (
        f"{state} is not used: everyone can write the directory {above}, and so replace what is in "
        f"it; as {ME}, run: chmod o-w {above}, or chmod +t if everyone is to write there"
    )
    for mode in (0o777, 0o757):
        above.chmod(mode)
        assert told in ledger_refused(state)
        assert told in log_refused(capfd, state=State(state))
    assert not [*state.iterdir()]
    for mode in (0o1777, 0o755):
        above.chmod(mode)
        Ledger(state / "ledger.sqlite").close()


def test_read_the_files_of_a_project_in_a_directory_that_is_open(tmp_path):
    tmp_path.chmod(0o755)
    # Where the project is, and whether it runs, is no secret.
    known = {"url", "lock"}
    with LocalProject(tmp_path, hosts=0):
        made = {path.name: path.stat().st_mode for path in tmp_path.iterdir()}
    assert {"project.sqlite", "project.sqlite-wal", "project.sqlite-shm"} <= made.keys()
    assert {name for name, mode in made.items() if mode & 0o077} <= known
    tmp_path.chmod(0o777)
    with pytest.raises(LocalProjectTrouble, match="can be written by everyone"):
        LocalProject(tmp_path)


def test_keep_a_users_own_links_from_being_followed(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "disk")
    make_private_directory(tmp_path / "state" / "boinc_gahp")
    assert (tmp_path / "disk" / "boinc_gahp").stat().st_mode & 0o777 == 0o700


def test_a_group_of_the_users_own_is_nobody_else():
    def status(mode, uid, gid):
        return os.stat_result((mode, 1, 1, 1, uid, gid, 0, 0, 0, 0))

    assert who_else_can_write(status(0o755, 1, 1)) is None
    assert who_else_can_write(status(0o775, 1, 1)) is None  # daemon's, on every Linux
    assert who_else_can_write(status(0o775, 1, 2)) == "group bin"
    assert who_else_can_write(status(0o775, ALICE, BOB)) == f"group {BOB}"
    assert who_else_can_write(status(0o777, 1, 1)) == "everyone"
