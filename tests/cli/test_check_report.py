import stat

import pytest

from tests.cli.conftest import InProcess, write_settings

pytestmark = pytest.mark.usefixtures("log_stopped")

KEY, PASSWORD = "0123456789abcdef0123456789abcdef", "Tr0ub4dor"
PROXY = f"proxy = 'http://alice:{PASSWORD}@proxy.example.edu:3128'\n"


@pytest.fixture
def report(home, capsys):
    """Writes a report, with what is in the log already; returns its text."""

    def report(log="", status=1):
        if log:
            path = home / ".local/state/boinc_gahp/boinc_gahp.log"
            path.parent.mkdir(mode=0o700, parents=True)
            path.write_text(log)
        check = InProcess(capsys, "check")
        told = check.prints("--report", str(home / "report.txt"), status=status)
        assert "before you send it" in told
        return (home / "report.txt").read_text("utf-8")

    return report


def test_it_has_versions_settings_and_the_log_and_is_for_its_owner(report, settings, home):
    text = report("one\ntwo\n", status=0)
    for line in (
        "requests 2.",
        "[htcondor] lease = ",
        "[project] authenticator = <auth",
        "\ntwo\n",
    ):
        assert line in text
    assert f"ok: settings: read from {settings}" in text
    assert stat.S_IMODE((home / "report.txt").stat().st_mode) == 0o600


def test_no_secret_of_settings_and_log_is_in_it(report, home):
    path = home / ".config/boinc_gahp/boinc_gahp.toml"
    write_settings(path, "http://127.0.0.1:9/", KEY, PROXY)
    other = f"[projects.other]\nurl = 'http://127.0.0.1:9/b/'\nauthenticator = 'other-{KEY}'\n"
    path.write_text(path.read_text() + other)
    path.chmod(0o600)
    lines = (KEY, f"auth_str=gone{KEY}", f"via http://alice:{PASSWORD}@proxy.example.edu")
    text = report("".join(f"{line}\n" for line in lines))
    assert "[projects.other] authenticator = <authenticator>" in text
    assert [secret for secret in (KEY, PASSWORD, "alice") if secret in text] == []


def test_settings_that_cannot_be_read_are_told_in_it(report, settings, home):
    settings.write_text("[project]\nurl = 7\n")
    assert "FAILED: settings: " in report()


def test_a_file_that_is_there_already_stays(home, capsys, settings):
    (home / "report.txt").write_text("mine")
    check = InProcess(capsys, "check")
    status, _, told = check("--report", str(home / "report.txt"))
    assert (status, (home / "report.txt").read_text()) == (1, "mine")
    assert "report.txt cannot be written: File exists" in told
