import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from boinc_gahp.cli.check import project_checks
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import Ledger
from boinc_gahp.ledger.rows import NewJob
from boinc_gahp.secret import Authenticator
from boinc_gahp.templates.types import InputFileInfo, InputTemplate, OutputFileInfo, OutputTemplate
from tests import faultproxy
from tests.cli.conftest import told, write_settings
from tests.contract.replay import WIRE
from tests.faultproxy import FaultProxy
from tests.helpers import certified, served
from tests.inside import write_templates
from tests.rpc import scripted
from tests.rpc.scripted import Scripted

pytestmark = pytest.mark.usefixtures("log_stopped")


OUT = OutputFileInfo("out", "<OUTFILE_0/>", max_nbytes=1e6)


def with_key(settings, authenticator):
    settings.with_name("key").write_text(authenticator)


def test_all_is_well_with_a_project_in_order(check, settings, home, project):
    report = check("--app", "uppercase", "--app", "multi")
    assert report.text.endswith("\nAll is well.\n")
    assert report.levels() == {"ok", "note"}
    assert f"read from {settings}" in report.of("settings")[0][1]
    assert report.of("project") == [("ok", f": {project.url}, as set in {settings}")]
    assert report.of("log") == [("ok", f": {home}/.local/state/boinc_gahp/boinc_gahp.log")]
    for topic in ("ledger", "address", "account", "clock", "files"):
        assert report.of(topic)[0][0] == "ok"
    assert "inputs in0, in1, outputs out0, out1, out2" in report.of("app multi")[0][1]
    assert "states no needs has 24 h until the deadline, 50 MB" in report.of("app multi")[1][1]
    assert project.authenticator not in report.text
    assert project.authenticator not in Path(report.of("log")[0][1][2:]).read_text()


def test_what_cannot_be_told_is_reported(check, settings):
    report = check()
    report.only("limits", "note", "are not known")
    report.only("apps", "note", "name those that you use: boinc_gahp check --app APP")


class TestSettings:
    def test_none_at_all_fails_with_what_to_do(self, check):
        report = check()
        assert report.of("settings")[0][0] == "note"
        report.only("project", "FAILED", "run boinc_gahp login URL")

    def test_a_wrong_one_is_all_that_is_reported(self, check, settings):
        settings.write_text("[projct]")
        [point] = check().points
        told(point, "FAILED", "did you mean project?")

    def test_one_that_the_group_can_read_is_a_warning_and_not_well(self, check, settings):
        settings.with_name("key").chmod(0o640)
        report = check()
        assert report.levels() == {"ok", "note", "warning"}
        assert report.text.endswith("\n0 failures, 1 warning.\n")

    def test_another_project_is_chosen_by_name(self, check, settings, project):
        settings.write_text(f"[projects.mine]\nurl = '{project.url}'\nauthenticator_file = 'key'\n")
        assert check("--project", "mine").levels() == {"ok", "note"}
        told_of = f'no project "yours" (there is mine: {project.url}'
        check("--project", "yours").only("project", "FAILED", told_of)

    def test_a_missing_authenticator_fails(self, check, settings):
        settings.with_name("key").unlink()
        report = check()
        assert report.of("settings")[1][0] == "warning"
        assert report.of("account")[0][0] == "FAILED"


class TestDirectories:
    @pytest.mark.parametrize(
        ("section", "topic", "level"),
        [
            ("[state]\ndir", "log", "FAILED"),
            ("[state]\ndir", "ledger", "FAILED"),
            ("[state]\ncache_dir", "cache", "warning"),
            ("[logging]\nfile", "log", "FAILED"),
        ],
    )
    def test_one_that_cannot_be_made_says_which_setting(
        self, check, settings, section, topic, level
    ):
        with settings.open("a") as file:
            file.write(f"{section} = '/dev/null/x/y'\n")
        check().only(topic, level, "[")


class TestLedger:
    @pytest.mark.usefixtures("settings")
    def test_jobs_whose_account_is_not_in_the_settings_any_more_are_a_warning(
        self, check, home, project
    ):
        account = Authenticator("of before").account
        with closing(Ledger(home / ".local/state/boinc_gahp/ledger.sqlite")) as ledger:
            jobs = JobLedger(ledger.store)
            jobs.accept(NewJob("a", project.url, account, "", "uppercase", "t", 6, "{}"))
        report = check("--app", "uppercase")
        good, point = report.of("ledger")
        assert good[0] == "ok"
        wanted = f"have no project {project.url} with the account (fingerprint {account})"
        told(point, "warning", wanted, "boinc_gahp ledger move")

    @pytest.mark.usefixtures("settings")
    def test_one_that_is_lost_is_no_new_one(self, check, home, project):
        path = home / ".local/state/boinc_gahp/ledger.sqlite"
        path.parent.mkdir(parents=True, mode=0o700)
        lock = AccountLock(path.parent, project.url, "an account")
        assert lock.try_acquire()
        lock.release()
        check().only("ledger", "FAILED", "was here and is gone")
        assert not path.exists()


class TestAddress:
    """What else is wrong there is told in the words of tests/rpc."""

    @pytest.mark.parametrize(
        ("url", "more", "said"),
        [("http://127.0.0.1:1/", "", "refused"), (None, "ca_bundle = 'no.pem'\n", "no.pem")],
    )
    def test_nobody_there_or_no_certificates(self, check, settings, project, *, url, more, said):
        write_settings(settings, url or project.url, project.authenticator, more)
        report = check("--app", "uppercase")
        report.only("address", "FAILED", said)
        assert report.of("account, files and apps")[0][0] == "note"
        assert report.of("app uppercase") == []

    def test_http_that_is_sent_on_to_https_fails_with_what_to_set(self, check, settings, tmp_path):
        context, bundle = certified(tmp_path, "boinc.example.edu")
        location = "https://boinc.example.edu/test/submit_rpc_handler.php"
        # A proxy, so that the ports can be those of the web.
        with Scripted(context=context) as safe, Scripted() as proxy:
            safe.answers.append(scripted.ok())
            proxy.answers += [scripted.status(301, Location=location), scripted.tunnel(safe.port)]
            settings.write_text(
                "[project]\nurl = 'http://boinc.example.edu:8080/test/'\n"
                f"authenticator_file = 'key'\nca_bundle = '{bundle}'\n"
                f"proxy = 'http://127.0.0.1:{proxy.port}'\n"
            )
            report = check()
            in_clear = [each.rpc for each in proxy.requests if each.method != "CONNECT"]
        said = "the authenticator; set url to https://boinc.example.edu/test/"
        report.only("address", "FAILED", said)
        assert in_clear == ["ping"]


class TestAccount:
    @pytest.mark.usefixtures("settings")
    def test_clocks_that_differ_are_a_warning(self, check, monkeypatch):
        monkeypatch.setattr(project_checks, "CLOCK_DIFFERENCE", -1.0)
        text = check().only("clock", "warning")
        assert re.search(r"the project's is \d+ s (ahead of|behind) this machine's", text)

    def test_a_bad_authenticator(self, check, settings):
        with_key(settings, "0123456789abcdef")
        report = check("--app", "uppercase")
        report.only("account", "FAILED", "account key is wrong")
        assert "0123456789abcdef" not in report.text
        without = "not looked at without an account that the project knows"
        report.only("files and apps", "note", without)

    def test_one_without_any_right(self, check, settings, project):
        with_key(settings, project.add_user("guest", access=False))
        report = check("--app", "uppercase")
        said = "the project knows it, but it has no right to submit (no file access)"
        report.only("account", "FAILED", said)
        report.only("files and apps", "note", "not looked at without the right to submit")

    def test_one_without_the_right_for_an_app(self, check, settings, project):
        with_key(settings, project.add_user("some", apps=["multi"]))
        report = check("--app", "uppercase", "--app", "multi")
        report.only("app uppercase", "FAILED", "may not submit")
        assert {word for word, _ in report.of("app multi")} == {"ok"}


@pytest.mark.usefixtures("settings")
class TestApps:
    def test_an_unknown_one(self, check):
        check("--app", "upper case").only("app upper case", "FAILED", "no app of this name")

    def test_templates_that_cannot_be_read(self, check, project):
        project.add_app("broken", "true", outputs="out")
        write_templates(project, "broken", "<x/>", "<y/>")
        check("--app", "broken").only("app broken", "FAILED", "input template")

    def test_a_project_whose_php_reads_no_template_files_fails_with_what_to_change(
        self, check, settings, project
    ):
        recording = WIRE / "estimate_batch__UNPATCHED_HEAD_template_entity_loader_bug.rep.xml"
        with FaultProxy(project.url) as proxy:
            write_settings(settings, proxy.url, project.authenticator)
            proxy.fail("estimate_batch", faultproxy.body(recording.read_bytes()), times=None)
            report = check("--app", "uppercase")
        report.only("app uppercase", "FAILED", "no submit can work", "util_basic.inc")

    def test_templates_that_lack_no_delete_are_a_warning(self, check, project):
        project.add_app("greedy", "true", outputs="out")
        write_templates(
            project,
            "greedy",
            InputTemplate((InputFileInfo("a"), InputFileInfo("b", no_delete=True))),
            OutputTemplate((OUT,)),
        )
        report = check("--app", "greedy")
        [*_, counts, inputs, outputs] = report.of("app greedy")
        told(counts, "warning", "so each job gets one attempt")
        told(inputs, "warning", "<no_delete/> for a:")
        told(outputs, "warning", "<no_delete/> for out:")

    def test_templates_that_fill_the_documents(self, check, project):
        files = tuple(InputFileInfo(f"in{i}", no_delete=True) for i in range(300))
        project.add_app("large", "true", outputs="out")
        template = InputTemplate(files, max_total_results=10)
        output = OutputTemplate((replace(OUT, no_delete=True),))
        write_templates(project, "large", template, output)
        [_, _, _, *found] = check("--app", "large").of("app large")
        told(found[0], "FAILED", "65,535")


def test_published_files_are_tried(check, project, settings, home):
    public = home / "public"
    public.mkdir()
    with served(public) as url:
        for part, level, told in (
            ("", "ok", f"everybody gets what is put at {url}"),
            ("elsewhere/", "FAILED", "a small file does not come from"),
        ):
            more = f"publish_directory = '{public}'\npublish_url = '{url}{part}'\n"
            write_settings(settings, project.url, project.authenticator, more)
            check().only("published files", level, told)
    assert not list(public.glob("*/??/*"))
    check().only("published files", "FAILED", "small", ": cannot connect (Connection refused); pub")
    public.rename(home / "gone")
    check().only("published files", "FAILED", f"with install -d -m 1777 {public}")
