"""What ``check`` says of HTCondor, which small programs stand in for here."""

import pytest

from boinc_gahp.cli.check.htcondor_checks import closed_to_others
from tests.cli.condor_tools import ROUTER, htcondor, job_router
from tests.cli.conftest import told

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("log_stopped", "settings")]


def test_without_htcondor_one_note_says_so(check, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    report = check()
    report.only("HTCondor", "note", "condor_config_val is not on the PATH")
    assert report.of("Job Router") == []


def test_settings_that_htcondor_cannot_read_are_reported_in_its_words(condor):
    condor.program("condor_config_val", "echo 'Error Line 77\nin x.conf' >&2; exit 1")
    [point] = htcondor()
    told(point, "FAILED", ": Error Line 77 in x.conf")
    assert job_router() == []


def test_an_htcondor_that_does_not_answer_is_a_warning(condor):
    condor.program("condor_q", "printf '\n-- Failed to fetch ads\nmore' >&2; exit 1")
    told(htcondor()[1], "warning", "is HTCondor running here? -- Failed to fetch ads")
    condor.program("condor_q", "exit 0")
    assert htcondor()[1][0] == "ok"


def test_all_of_it_is_well(check, condor, gahp, settings):
    condor.set(**ROUTER)
    condor.accepts("Other", "Boinc")
    report = check()
    assert report.levels() == {"ok", "note"}
    assert [text for _, text in report.of("HTCondor")][:3] == [
        ": version 23.9.6; jobs are sent with grid_resource = batch boinc",
        f": BOINC_GAHP is {gahp}",
        ": GRIDMANAGER_GAHP_CALL_TIMEOUT is 300",
    ]
    assert report.of("Job Router") == [("ok", ": route Boinc leads to BOINC")]
    url = settings.read_text().split("'")[1]
    assert f"finds accounts on {url}" in report.of("HTCondor")[3][1]


def test_before_10_the_grid_type_is_another(condor):
    condor.version("9.0.17")
    assert "9.0.17; jobs are sent with grid_resource = boinc" in htcondor()[0][1]
    assert "[timeouts] submit" in htcondor()[2][1]
    assert job_router() == []


class TestProgram:
    @pytest.mark.parametrize(
        ("named", "words"),
        [
            (None, "set it to /"),
            ("/opt/none/boinc_gahp", "not an executable program"),
            ("/etc/passwd", "not an executable program"),
            ("boinc_gahp", "absolute path"),
        ],
    )
    def test_one_that_cannot_be_run_fails(self, condor, named, words):
        condor.set(BOINC_GAHP=named)
        told(htcondor()[1], "FAILED", words)

    @pytest.mark.parametrize(
        ("closed", "remedy"), [("sub", "chmod o+x"), ("sub/boinc_gahp", "chmod o+rx")]
    )
    def test_one_that_others_cannot_run_is_a_warning_that_names_the_place(
        self, condor, gahp, closed, remedy
    ):
        sub = gahp.parent / "sub"
        sub.mkdir(mode=0o755)
        gahp = gahp.rename(sub / "boinc_gahp")
        condor.set(BOINC_GAHP=str(gahp))
        (sub.parent / closed).chmod(0o750)
        told(htcondor()[1], "warning", f"{remedy} {sub.parent / closed}")

    def test_links_and_interpreters_are_followed(self, public, tmp_path):
        hidden = tmp_path / "python"
        hidden.write_text("#!/bin/sh\n")
        hidden.chmod(0o755)
        tmp_path.chmod(0o700)
        link, script = public / "link", public / "script"
        link.symlink_to(hidden)
        script.write_text(f"#! {hidden} -u\n")
        script.chmod(0o755)
        for program in (link, script):
            closed = closed_to_others(program)
            assert hidden.is_relative_to(closed)
        script.write_text("#!/bin/sh -e\n")
        assert closed_to_others(script) is None

    def test_so_are_the_modules_that_it_reads(self, gahp, public):
        module = public / "module.py"
        module.touch()
        module.chmod(0o644)
        assert closed_to_others(gahp, (module,)) is None
        module.chmod(0o640)
        assert closed_to_others(gahp, (module,)) == module


@pytest.mark.parametrize(
    ("version", "timeout", "level", "advice"),
    [
        ("9.0.17", "3600", "warning", "set submit = 3570"),
        ("9.0.17", "270", "FAILED", "set submit = 240"),
        ("9.0.17", "300", "ok", ""),
        ("9.0.17", "5 minutes", "warning", "not a number"),
        ("23.9.6", "3600", "ok", "is 3600"),
        ("23.9.6", "240", "warning", "set it to 300"),
        ("23.9.6", "5 minutes", "warning", "not a number"),
    ],
)
def test_a_submit_before_10_and_a_cancel_later_ends_before_htcondor_gives_it_up(
    condor, version, timeout, level, advice
):
    condor.version(version)
    condor.set(GRIDMANAGER_GAHP_CALL_TIMEOUT=timeout)
    told(htcondor()[2], level, advice)


def test_since_10_the_schedd_has_to_count_its_jobs_often(condor):
    for interval, found in (("300", True), ("20", False), ("x", True)):
        condor.set(SCHEDD_INTERVAL=interval)
        said = [text for level, text in htcondor() if "SCHEDD_INTERVAL" in text]
        assert bool(said) == found
        assert all("set it to 20" in text for text in said)


@pytest.mark.usefixtures("condor")
class TestWhatTheDaemonFinds:
    def test_settings_that_only_the_command_line_names_are_not_found(
        self, check, settings, tmp_path
    ):
        elsewhere = tmp_path / "mine.toml"
        elsewhere.write_text(settings.read_text())
        settings.with_name("key").rename(tmp_path / "key")
        settings.unlink()
        report = check("--config", str(elsewhere))
        assert report.of("account")[0][0] == "ok"
        said = (f"{elsewhere} is not read then", "no settings file names a project")
        told(report.of("HTCondor")[-1], "FAILED", *said)

    def test_a_project_without_an_authenticator_is_named(self, settings):
        settings.with_name("key").unlink()
        told(htcondor()[-1], "FAILED", "key: No such file", "chmod 600")

    def test_a_secret_that_everybody_can_read_is_refused(self, check, settings):
        settings.with_name("key").chmod(0o644)
        report = check()
        for name in ("account", "HTCondor"):
            told(report.of(name)[-1], "FAILED", "chmod 600")

    def test_directories_that_htcondor_does_not_know_are_a_warning(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        told(htcondor()[3], "warning", "XDG_STATE_HOME", "uses ~/.local/state")
