import logging
import os
import stat
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from boinc_gahp import logs
from boinc_gahp.config.settings import Logging, Settings, State
from boinc_gahp.daemon._engine import log_file
from boinc_gahp.secret import Authenticator
from tests.helpers import files_up_to

SECRET = "5d41402abc4b2a76b9719d911017c592"

log = logging.getLogger("boinc_gahp.test")


@pytest.fixture(autouse=True)
def _stopped():
    yield
    logs.stop()


@pytest.fixture
def settings(tmp_path):
    return Settings(state=State(dir=tmp_path / "state"))


def begin(settings):
    path = logs.start(settings)
    assert path is not None
    return path


def test_the_log_is_in_the_state_directory_and_private(settings, tmp_path):
    path = begin(settings)
    assert path == tmp_path / "state" / "boinc_gahp.log"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_it_begins_with_version_sources_and_problems(settings):
    path = begin(replace(settings, sources=(Path("/etc/x.toml"),), problems=("something odd",)))
    first, second = path.read_text().splitlines()
    assert "settings from /etc/x.toml" in first
    assert f" {os.getpid()} INFO " in first
    assert second.endswith("WARNING boinc_gahp.log: something odd")


LEVELS = {"debug": "diwe", "info": "iwe", "warning": "we", "error": "e"}


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_decides_what_is_written(settings, level):
    path = begin(replace(settings, logging=Logging(level=level)))
    for name in LEVELS:
        getattr(log, name)(name[0])
    lines = [line for line in path.read_text().splitlines() if "boinc_gahp.test" in line]
    assert "".join(line[-1] for line in lines) == LEVELS[level]


def test_an_internal_error_can_say_where_it_is(settings):
    path = begin(settings)
    assert log_file() == str(path)
    logs.stop()
    assert "no log is written" in log_file()


def test_off_writes_nothing_anywhere(settings, tmp_path, capfd):
    assert logs.start(replace(settings, logging=Logging(level="off"))) is None
    log.error("x")
    assert not (tmp_path / "state").exists()
    assert capfd.readouterr() == ("", "")


def test_names_that_are_not_unicode_are_written(settings):
    path = begin(settings)
    log.info("path %s", os.fsdecode(b"/data/\xff\xfe"))
    assert "path /data/\\xff\\xfe" in path.read_text()


def test_a_record_that_takes_long_to_format_holds_up_no_other(tmp_path):
    handler = logs.SharedLogHandler(tmp_path / "log", 1_000_000, 1)
    begun, may_end = threading.Event(), threading.Event()

    class Slow:
        def __str__(self):
            begun.set()
            assert may_end.wait(60)
            return "slow"

    slow, quick = (logging.makeLogRecord({"msg": message}) for message in (Slow(), "quick"))
    thread = threading.Thread(target=handler.handle, args=(slow,))
    thread.start()
    assert begun.wait(60)
    other = threading.Thread(target=handler.handle, args=(quick,), daemon=True)
    other.start()
    other.join(60)
    may_end.set()
    thread.join(60)
    handler.close()
    assert (tmp_path / "log").read_text() == "quick\nslow\n"


def test_a_message_cannot_look_like_two(settings):
    path = begin(settings)
    log.info("the server said %s", "x\r\n2026-01-01 1 INFO boinc_gahp: all is well")
    assert len(path.read_text().splitlines()) == 2


class TestSecrets:
    LEAKS = (
        f"plain {SECRET}",
        f"GET /get_output.php?cmd=workunit_file&auth_str={SECRET}&wu_name=x",
        f"<authenticator>{SECRET}</authenticator>",
        f"<authenticator> {SECRET} </authenticator>",
        f"authenticator = '{SECRET}'",
        f"BOINC_SELECT_PROJECT http://x/ {SECRET}",
    )

    @pytest.mark.parametrize("text", LEAKS)
    def test_a_known_authenticator_is_masked_in_messages_and_arguments(self, settings, text):
        known = Authenticator(SECRET)
        path = begin(settings)
        log.info(text)
        log.info("%s %r", text, {"request": text})
        assert SECRET not in path.read_text()
        assert known.reveal() == SECRET

    @pytest.mark.parametrize("text", LEAKS[1:])
    def test_one_that_nobody_knows_is_recognised_by_its_place(self, text):
        strange = text.replace(SECRET, "1234567_0123456789abcdef")
        assert "0123456789abcdef" not in logs.redact(strange)

    def test_logins_in_urls_are_masked(self):
        text = "proxies http://u:s3same@a:1 and https://s3same@b/x, mail to me@x.example"
        assert logs.redact(text) == (
            "proxies http://<login>@a:1 and https://<login>@b/x, mail to me@x.example"
        )

    def test_tracebacks_are_masked_too(self, settings):
        Authenticator(SECRET)
        path = begin(settings)
        try:
            int(f"bad word {SECRET}")
        except ValueError:
            log.exception("it went wrong")
        text = path.read_text()
        assert "'bad word <authenticator>'" in text
        assert "Traceback" in text
        assert SECRET not in text

    def test_libraries_are_masked_too(self, settings):
        path = begin(settings)
        library = logging.getLogger("urllib3.connectionpool")
        library.warning("Retrying: /get_output.php?auth_str=%s", SECRET)
        assert "auth_str=<authenticator>" in path.read_text()

    @given(st.text(st.characters(exclude_categories=["Cs"])))
    def test_texts_without_secrets_stay_as_they_are(self, text):
        if not any(word in text.lower() for word in ("auth", "select", "://")):
            assert logs.redact(text) == text

    def test_a_list_of_commands_is_no_secret(self):
        text = "S BOINC_PING BOINC_SELECT_PROJECT BOINC_SET_LEASE BOINC_SUBMIT"
        assert logs.redact(text) == text

    def test_what_was_masked_stays_readable(self):
        once = logs.redact(f"auth_str={SECRET}&x=1 <authenticator> is wrong")
        assert once == "auth_str=<authenticator>&x=1 <authenticator> is wrong"
        assert logs.redact(once) == once


class TestRotation:
    def small(self, settings, keep):
        return replace(settings, logging=Logging(max_bytes=400, keep=keep))

    @pytest.mark.parametrize("keep", [0, 2])
    def test_old_logs_are_numbered_and_at_most_so_many(self, settings, keep):
        path = begin(self.small(settings, keep))
        for number in range(40):
            log.info("line %d", number)
        ends = [*(f".{number}" for number in range(keep, 0, -1)), ""]
        names = {each.name for each in path.parent.iterdir()}
        assert names == {f"{path.name}{end}" for end in (*ends, ".lock")}
        assert path.stat().st_size < 800
        text = "".join(Path(f"{path}{end}").read_text() for end in ends)
        numbers = [int(line.rsplit(" ", 1)[1]) for line in text.splitlines()]
        assert numbers == list(range(numbers[0], 40))

    @pytest.mark.processes
    def test_several_daemons_lose_no_line(self, settings):
        path = begin(self.small(settings, 1000))
        program = (
            "import logging, sys\n"
            "from pathlib import Path\n"
            "from boinc_gahp import logs\n"
            "from boinc_gahp.config.settings import Logging, Settings, State\n"
            "state = State(dir=Path(sys.argv[1]))\n"
            "logs.start(Settings(state=state, logging=Logging(max_bytes=400, keep=1000)))\n"
            "for n in range(150): logging.getLogger('boinc_gahp').info('%s:%d:', sys.argv[2], n)\n"
        )
        daemons = [
            subprocess.Popen([sys.executable, "-c", program, str(path.parent), name])
            for name in ("one", "two", "three")
        ]
        assert [daemon.wait(60) for daemon in daemons] == [0, 0, 0]
        text = "".join(each.read_text() for each in path.parent.iterdir())
        for name in ("one", "two", "three"):
            assert [n for n in range(150) if f": {name}:{n}:" not in text] == []

    def test_a_log_that_someone_moved_away_is_begun_anew(self, settings):
        path = begin(settings)
        path.rename(path.with_suffix(".old"))
        log.info("after")
        assert "after" in path.read_text()


def said_once(capfd):
    """Return the one line on stderr; there is nothing on stdout."""
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err


class TestTrouble:
    def test_a_directory_that_cannot_be_made_is_reported_once_on_stderr(
        self, settings, tmp_path, capfd
    ):
        (tmp_path / "state").write_text("a file")
        assert logs.start(settings) is None
        log.error("x")
        assert said_once(capfd).startswith("boinc_gahp: no log is written: ")

    def test_a_file_that_cannot_grow_is_reported_once_and_stops_nobody(self, settings, capfd):
        path = begin(settings)
        log.error("long" * 1000)
        with files_up_to(path.stat().st_size):
            log.error("x")
            log.error("y")
        told = f"boinc_gahp: the log {path} cannot be written: [Errno 27] File too large\n"
        assert said_once(capfd) == told

    def test_a_directory_that_vanishes_is_made_again(self, settings):
        path = begin(settings)
        path.unlink()
        path.parent.rmdir()
        log.error("x")
        assert path.read_text().endswith(" x\n")
        assert path.parent.stat().st_mode & 0o777 == 0o700
