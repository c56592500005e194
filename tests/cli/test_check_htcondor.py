"""What ``check`` says of HTCondor, which small programs stand in for here."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from boinc_gahp.cli.condor_points import closed_to_others, htcondor_points
from boinc_gahp.config import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Check

pytestmark = pytest.mark.usefixtures("log_stopped", "settings")

CONF = Path(__file__).parents[2] / "conf"

ROUTE = """\
REQUIREMENTS (JobUniverse == 5) && (BoincApp isnt undefined)
UNIVERSE Grid
SET GridResource "batch boinc"
MaxJobs = 20000
EVALSET TransferOutputRemaps SavedOutputRemaps
COPY /^Boinc(.+)/ remote_Boinc\\1
"""
TRANSFORM = "REQUIREMENTS BoincApp isnt undefined\nCOPY TransferOutputRemaps SavedOutputRemaps\n"
ROUTER = {
    "DAEMON_LIST": "MASTER, SCHEDD JOB_ROUTER",
    "JOB_ROUTER_ROUTE_NAMES": "Other Boinc",
    "JOB_ROUTER_ROUTE_Other": 'SET GridResource "condor a b"',
    "JOB_ROUTER_ROUTE_Boinc": ROUTE,
    "JOB_ROUTER_SOURCE_JOB_CONSTRAINT": "true",
    "JOB_TRANSFORM_NAMES": "Boinc",
    "JOB_TRANSFORM_Boinc": TRANSFORM,
}


class Condor:
    """An HTCondor's tools on the PATH: what they print is in files."""

    def __init__(self, bin_: Path) -> None:
        self._bin = bin_
        self._values = bin_ / "values"
        self._values.mkdir(parents=True)
        self.program(
            "condor_config_val",
            f"""cd {self._values}
            if [ "$1" = -dump ]; then
                ls | sed -n "s/\\($2.*\\)/\\1 = .../p"
                exit
            fi
            if [ "$1" = -subsystem ]; then
                name=$4
                [ ! -e "$2.$name" ] || name=$2.$name
                [ -e "$name" ] || {{ echo " # at: <Default>"; exit; }}
                printf '%s = ' "$name"; cat "$name"
                echo " # at: $(cat "../places/$name" || echo '/etc/condor/condor_config, line 1')"
                exit
            fi
            cat "$1" 2>/dev/null || {{ echo "Not defined: $1" >&2; exit 1; }}""",
        )

    def last_set(self, name: str, value: str, place: str) -> None:
        self.set(**{name: value})
        places = self._bin / "places"
        places.mkdir(exist_ok=True)
        (places / name).write_text(place + "\n")

    def set(self, **values: str | None) -> None:
        for name, value in values.items():
            if value is None:
                (self._values / name).unlink()
            else:
                (self._values / name).write_text(value + "\n")

    def version(self, version: str) -> None:
        printed = f"$CondorVersion: {version} 2026-07-12 PackageID: {version}-1 $"
        self.program("condor_version", f"cat <<'end'\n{printed}\n$CondorPlatform: x $\nend")

    def accepts(self, *routes: str) -> None:
        shown = "".join(f'Route 1\nName         : "{name}"\n' for name in routes)
        self.program("condor_job_router_info", f"cat <<'end'\n{shown}end")

    def program(self, name: str, script: str) -> None:
        program = self._bin / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that everybody can read, as those of pytest are not."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def gahp(public: Path) -> Path:
    """A program that everybody can run."""
    program = public / "boinc_gahp"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def condor(home: Path, gahp: Path, monkeypatch: pytest.MonkeyPatch) -> Condor:
    """HTCondor 23.9.6 with a BOINC_GAHP, and without a Job Router."""
    condor = Condor(home / "bin")
    monkeypatch.setenv("PATH", f"{home}/bin:/usr/bin:/bin")
    condor.set(BOINC_GAHP=str(gahp), DAEMON_LIST="MASTER, SCHEDD")
    condor.version("23.9.6")
    return condor


def htcondor(topic: str = "HTCondor") -> list[tuple[str, str]]:
    """Return level and text of what is said of HTCondor, or of its Job Router."""
    points = htcondor_points(load(None, {}), Path("/opt/here/boinc_gahp"), None)
    said = [(point.level.value, point.text) for point in points]
    return [(level, text) for level, text in said if text.startswith(f"{topic}:")]


def job_router() -> list[tuple[str, str]]:
    return htcondor("Job Router")


def test_without_htcondor_one_note_says_so(check: Check, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    report = check()
    [(level, text)] = report.of("HTCondor")
    assert level == "note"
    assert "condor_config_val is not on the PATH" in text
    assert report.of("Job Router") == []
    assert report.status == 0


def test_settings_that_htcondor_cannot_read_are_told_in_its_words(condor: Condor) -> None:
    condor.program("condor_config_val", "echo 'Error Line 77\nin x.conf' >&2; exit 1")
    [(level, text)] = htcondor()
    assert level == "FAILED"
    assert text.endswith(": Error Line 77 in x.conf")
    assert job_router() == []


def test_an_htcondor_that_does_not_answer_is_a_warning(condor: Condor) -> None:
    condor.program("condor_q", "printf '\n-- Failed to fetch ads\nmore' >&2; exit 1")
    level, text = htcondor()[1]
    assert level == "warning"
    assert text.endswith("is HTCondor running here? -- Failed to fetch ads")
    condor.program("condor_q", "exit 0")
    assert htcondor()[1][0] == "ok"


def test_all_of_it_is_well(check: Check, condor: Condor, gahp: Path, settings: Path) -> None:
    condor.set(**ROUTER)
    condor.accepts("Other", "Boinc")
    report = check()
    assert report.status == 0
    assert [text for _, text in report.of("HTCondor")][:3] == [
        ": version 23.9.6; jobs are sent with grid_resource = batch boinc",
        f": BOINC_GAHP is {gahp}",
        ": GRIDMANAGER_GAHP_CALL_TIMEOUT is 300",
    ]
    assert report.of("Job Router") == [("ok", ": route Boinc leads to BOINC")]
    url = settings.read_text().split("'")[1]
    assert f"finds accounts on {url}" in report.of("HTCondor")[3][1]


class TestVersion:
    def test_before_10_the_grid_type_is_another(self, condor: Condor) -> None:
        condor.version("9.0.17")
        assert "9.0.17; jobs are sent with grid_resource = boinc" in htcondor()[0][1]
        assert "[timeouts] submit" in htcondor()[2][1]
        assert job_router() == []

    def test_one_that_cannot_be_told_is_noted(self, condor: Condor) -> None:
        condor.version("unknown")
        assert htcondor()[0][0] == "note"


class TestProgram:
    def test_one_that_is_not_set_says_what_to_set(self, condor: Condor) -> None:
        condor.set(BOINC_GAHP=None)
        level, text = htcondor()[1]
        assert level == "FAILED"
        assert "set it to /" in text

    @pytest.mark.parametrize(
        ("named", "words"),
        [
            ("/opt/none/boinc_gahp", "no program that can be run"),
            ("/etc/passwd", "no program that can be run"),
            ("boinc_gahp", "absolute path"),
        ],
    )
    def test_one_that_cannot_be_run_fails(self, condor: Condor, named: str, words: str) -> None:
        condor.set(BOINC_GAHP=named)
        level, text = htcondor()[1]
        assert level == "FAILED"
        assert words in text

    @pytest.mark.parametrize(
        ("closed", "remedy"), [("sub", "chmod o+x"), ("sub/boinc_gahp", "chmod o+rx")]
    )
    def test_one_that_others_cannot_run_is_a_warning_that_names_the_place(
        self, condor: Condor, gahp: Path, closed: str, remedy: str
    ) -> None:
        sub = gahp.parent / "sub"
        sub.mkdir(mode=0o755)
        gahp = gahp.rename(sub / "boinc_gahp")
        condor.set(BOINC_GAHP=str(gahp))
        (sub.parent / closed).chmod(0o750)
        level, text = htcondor()[1]
        assert level == "warning"
        assert text.endswith(f"{remedy} {sub.parent / closed}")

    def test_links_and_interpreters_are_followed(self, public: Path, tmp_path: Path) -> None:
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
            assert closed is not None
            assert hidden.is_relative_to(closed)
        script.write_text("#!/bin/sh -e\n")
        assert closed_to_others(script) is None

    def test_so_are_the_modules_that_it_reads(self, gahp: Path, public: Path) -> None:
        module = public / "module.py"
        module.touch()
        module.chmod(0o644)
        assert closed_to_others(gahp, (module,)) is None
        module.chmod(0o640)
        assert closed_to_others(gahp, (module,)) == module


class TestTimeLimits:
    @pytest.mark.parametrize(
        ("timeout", "level", "advice"),
        [
            ("3600", "warning", "set submit = 3570"),
            ("270", "FAILED", "set submit = 240"),
            ("300", "ok", ""),
            ("5 minutes", "warning", "no number"),
        ],
    )
    def test_before_10_a_submit_has_to_end_before_htcondor_gives_it_up(
        self, condor: Condor, timeout: str, level: str, advice: str
    ) -> None:
        condor.version("9.0.17")
        condor.set(GRIDMANAGER_GAHP_CALL_TIMEOUT=timeout)
        found, text = htcondor()[2]
        assert found == level
        assert advice in text

    @pytest.mark.parametrize(
        ("timeout", "level", "advice"),
        [
            ("3600", "ok", "is 3600"),
            ("240", "warning", "leave it at 300"),
            ("5 minutes", "warning", "no number"),
        ],
    )
    def test_since_10_a_cancel_has_to(
        self, condor: Condor, timeout: str, level: str, advice: str
    ) -> None:
        condor.set(GRIDMANAGER_GAHP_CALL_TIMEOUT=timeout)
        found, text = htcondor()[2]
        assert found == level
        assert advice in text


class TestJobRouter:
    @pytest.mark.usefixtures("condor")
    def test_none_is_noted(self) -> None:
        [(level, text)] = job_router()
        assert level == "note"
        assert "conf/zz-boinc_gahp.router.conf" in text

    @pytest.mark.parametrize("name", ["DAEMON_LIST", "MASTER.DAEMON_LIST"])
    def test_one_that_does_not_run_fails_and_names_the_file_to_mend(
        self, condor: Condor, name: str
    ) -> None:
        condor.set(**ROUTER)
        condor.last_set(name, "MASTER SCHEDD", "/etc/condor/condor_config.local, line 7")
        assert job_router()[0] == (
            "FAILED",
            "Job Router: there is a route to BOINC (Boinc), but no JOB_ROUTER in "
            f"{name}, which is last set in /etc/condor/condor_config.local, line 7; add it there, "
            "and run condor_reconfig",
        )

    def test_a_route_that_another_file_leaves_out_fails_and_names_that_file(
        self, condor: Condor
    ) -> None:
        condor.set(**ROUTER)
        condor.last_set("JOB_ROUTER_ROUTE_NAMES", "Other", "/etc/condor/zzz.conf, line 3")
        [(level, text)] = job_router()
        assert level == "FAILED"
        assert "route Boinc leads to BOINC, but is not in JOB_ROUTER_ROUTE_NAMES" in text
        assert "last set in /etc/condor/zzz.conf, line 3; add it there" in text
        condor.set(JOB_ROUTER_ROUTE_NAMES=None)
        assert "which no file sets" in job_router()[0][1]

    @pytest.mark.parametrize(
        ("constraint", "lets_in"),
        [
            ("true", True),
            ("(WantIt) || ((TARGET.JobUniverse == 5) && (BoincApp isnt undefined))", True),
            ("WantIt =?= true", False),
            ('Owner == "alice"', False),
            ("((", False),
        ],
    )
    def test_a_constraint_that_keeps_jobs_from_the_route_is_a_warning_that_names_its_file(
        self, condor: Condor, constraint: str, lets_in: bool
    ) -> None:
        condor.set(**ROUTER)
        name = "JOB_ROUTER_SOURCE_JOB_CONSTRAINT"
        condor.last_set(name, constraint, "/etc/condor/condor_config.local, line 9")
        (level, text), *_ = job_router()
        assert level == ("ok" if lets_in else "warning")
        if not lets_in:
            assert f"{name}, which is last set in /etc/condor/condor_config.local, line 9" in text
            assert "|| (BoincApp isnt undefined)" in text

    def test_a_transform_that_another_file_leaves_out_is_a_warning_that_names_that_file(
        self, condor: Condor
    ) -> None:
        condor.set(**ROUTER)
        condor.last_set("JOB_TRANSFORM_NAMES", "Other", "/etc/condor/zzz.conf, line 4")
        level, text = job_router()[1]
        assert level == "warning"
        assert "the transform Boinc, which saves them, is not in JOB_TRANSFORM_NAMES" in text
        assert "/etc/condor/zzz.conf, line 4" in text

    @pytest.mark.parametrize(
        ("line", "advice"),
        [
            ("GridResource batch boinc", 'write: SET GridResource "batch boinc"'),
            ('gridresource "batch boinc"', 'write: SET GridResource "batch boinc"'),
            ("SET GridResource batch boinc", "lacks quotes"),
            ("MaxJobs 10", "write: MaxJobs = 10"),
            ("MaxIdleJobs 10", "write: MaxIdleJobs = 10"),
        ],
    )
    def test_a_line_that_htcondor_would_not_take_is_shown(
        self, condor: Condor, line: str, advice: str
    ) -> None:
        route = ROUTE if line.startswith("Max") else ROUTE.replace("SET GridResource", "# SET")
        condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": f"{route}  {line}\n"}))
        condor.accepts()
        [(level, text)] = job_router()
        assert level == "FAILED"
        assert f'"{line}"' in text
        assert advice in text

    def test_the_old_syntax_fails(self, condor: Condor) -> None:
        route = '[ GridResource = "batch boinc"; name = "Boinc" ]'
        condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": route}))
        level, text = job_router()[0]
        assert level == "FAILED"
        assert "old syntax" in text

    def test_a_route_that_htcondor_leaves_out_fails(self, condor: Condor) -> None:
        condor.set(**ROUTER)
        condor.accepts("Other")
        [(level, text)] = job_router()
        assert level == "FAILED"
        assert "drops route Boinc" in text
        assert "JobRouterLog" in text
        condor.set(JOB_ROUTER_ROUTE_Boinc=ROUTE.partition("\n")[2])
        assert "JobRouterLog" in job_router()[0][1]
        condor.set(JOB_ROUTER_SOURCE_JOB_CONSTRAINT=None)
        assert "it has no REQUIREMENTS" in job_router()[0][1]

    @pytest.mark.parametrize(
        ("versions", "level", "words"),
        [
            ("25.14.1 true", "FAILED", "25.14.1 refuses JOB_ROUTER_ENTRIES"),
            ("23.9.6 false", "FAILED", "is not looked at unless"),
            ("23.9.6 true", "warning", "only up to HTCondor 24"),
        ],
    )
    def test_entries_are_a_thing_of_the_past(
        self, condor: Condor, versions: str, level: str, words: str
    ) -> None:
        version, allowed = versions.split()
        condor.version(version)
        condor.set(
            DAEMON_LIST="JOB_ROUTER",
            JOB_ROUTER_ENTRIES='[ GridResource = "batch boinc"; ]',
            JOB_ROUTER_USE_DEPRECATED_ROUTER_ENTRIES=allowed,
        )
        [(found, text)] = job_router()
        assert found == level
        assert words in text

    @pytest.mark.parametrize(
        "change",
        [
            {"JOB_ROUTER_ROUTE_Boinc": ROUTE.replace("EVALSET", "# ")},
            {"JOB_ROUTER_ROUTE_Boinc": ROUTE.replace("SavedOutputRemaps", "Other")},
            {"JOB_TRANSFORM_NAMES": "None"},
            {"JOB_TRANSFORM_Boinc": "SET A 1"},
        ],
        ids=["not-put-back", "put-back-from-elsewhere", "no-transform", "not-saved"],
    )
    def test_remaps_that_would_be_lost_are_a_warning(
        self, condor: Condor, change: dict[str, str]
    ) -> None:
        condor.set(**(ROUTER | change))
        found = job_router()
        assert found[0] == ("ok", "Job Router: route Boinc leads to BOINC")
        assert found[1][0] == "warning"
        assert "loses transfer_output_remaps" in found[1][1]

    def test_remaps_may_come_back_in_other_ways(self, condor: Condor) -> None:
        for line in (
            "COPY SavedOutputRemaps TransferOutputRemaps",
            'EVALSET TransferOutputRemaps SavedOutputRemaps ?: ""',
        ):
            route = ROUTE.replace("EVALSET", "#") + line
            condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": route}))
            assert len(job_router()) == 1

    def test_a_route_that_passes_on_no_app_is_a_warning(self, condor: Condor) -> None:
        route = ROUTE.replace("COPY /^Boinc(.+)/ remote_Boinc\\1", "")
        condor.set(**(ROUTER | {"JOB_ROUTER_ROUTE_Boinc": route}))
        assert [level for level, _ in job_router()] == ["ok", "warning"]
        assert "COPY /^Boinc(.+)/ remote_Boinc\\1" in job_router()[1][1]

    def test_the_example_has_a_route_without_fault(self, condor: Condor) -> None:
        text = (CONF / "zz-boinc_gahp.router.conf").read_text()
        values = dict(ROUTER)
        for name in ("JOB_ROUTER_ROUTE_Boinc", "JOB_TRANSFORM_Boinc"):
            values[name] = text.split(f"{name} @=end\n")[1].split("@end")[0]
        condor.set(**values)
        assert job_router() == [("ok", "Job Router: route Boinc leads to BOINC")]


@pytest.mark.usefixtures("condor")
class TestWhatTheDaemonFinds:
    def test_settings_that_only_the_command_line_names_are_not_found(
        self, check: Check, settings: Path, tmp_path: Path
    ) -> None:
        elsewhere = tmp_path / "mine.toml"
        elsewhere.write_text(settings.read_text())
        settings.with_name("key").rename(tmp_path / "key")
        settings.unlink()
        report = check("--config", str(elsewhere))
        assert report.of("account")[0][0] == "ok"
        level, text = report.of("HTCondor")[-1]
        assert level == "FAILED"
        assert f"{elsewhere} is not read then" in text
        assert "chmod 600" in text

    def test_a_project_without_an_authenticator_is_named(self, settings: Path) -> None:
        settings.with_name("key").unlink()
        level, text = htcondor()[-1]
        assert level == "FAILED"
        assert "no authenticator for http" in text
        assert "url" not in text

    def test_a_secret_that_everybody_can_read_is_refused(
        self, check: Check, settings: Path
    ) -> None:
        settings.with_name("key").chmod(0o644)
        report = check()
        assert report.status == 1
        assert "chmod 600" in report.of("settings")[0][1]

    def test_directories_that_htcondor_does_not_know_are_a_warning(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        level, text = htcondor()[3]
        assert level == "warning"
        assert "XDG_STATE_HOME" in text
        assert "looks into ~/.local/state" in text
