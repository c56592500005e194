"""Fetches from a project that answers from a script: what a local one does not do."""

import io
import os
import zipfile

import pytest

from boinc_gahp.errors import OutputError, RpcError
from boinc_gahp.fetch.job_directory import fetch_failed, fetch_output
from boinc_gahp.fetch.types import FetchRequest, FetchResult
from tests.contract.replay import Reply
from tests.fetch.jobs import (
    FATAL,
    FILE,
    GONE,
    INSTANCE,
    JOB,
    completed,
    done,
    ended,
    failed,
    instance,
    templates,
    uploaded,
)
from tests.submit.scripted import Script, batch, error, job


def fetch(script, home, *specs, name=JOB):
    mode = "SOME" if specs else "ALL"
    request = FetchRequest(name, str(home), "job.err", mode, specs)
    return fetch_output(script.context(), request)


def names(home):
    return sorted(os.listdir(home))  # noqa: PTH208


def test_a_missing_required_output_is_an_error_that_names_it(tmp_path):
    script = done("out0", "out1", "out2", optional=("out1",), present=(0,))
    with pytest.raises(OutputError, match=r"output 'out2' \(number 2\) of job 'b#1.0' is missing"):
        fetch(script, tmp_path)
    assert names(tmp_path) == ["job.err", "out0"]


def test_what_was_not_asked_for_may_be_missing(tmp_path):
    script = done("out0", "out1", present=(1,))
    fetch(script, tmp_path, ("out1", "x"))
    assert (tmp_path / "x").read_text() == "file 1"


def test_the_stderr_times_and_size_of_a_good_job(tmp_path):
    nbytes = len("file 0") + len("said\n")
    assert fetch(done("out0"), tmp_path) == FetchResult(0, 2.5, 1.5, nbytes)
    script = done("out0")
    script.replies["query_completed_job"] = completed(3)
    assert fetch(script, tmp_path) == FetchResult(3, 2.5, 1.5, nbytes), "its own exit status"
    assert (tmp_path / "job.err").read_text() == "said\n"


def test_outputs_beyond_the_apps_template_are_delivered_by_number(tmp_path, caplog):
    fetch(done("out0", present=(0, 1, 2)), tmp_path)
    assert names(tmp_path) == ["job.err", "out0", "output_1", "output_2"]
    assert (tmp_path / "output_2").read_text() == "file 2"
    assert "has 3 outputs, but its template names 1" in caplog.text


def test_an_app_without_outputs_delivers_stderr(tmp_path):
    fetch(done(present=()), tmp_path)
    assert names(tmp_path) == ["job.err"]


FAILED = {
    "the last that is not 0": (ended(-5, 11), 11, "exit statuses of its instances: -5, 11"),
    "not a 0 after it": (ended(195, 0), 195, "195, 0"),
    "all 0: 1": (ended(0, 0, why="too_many_success_results"), 1, "without agreeing"),
    "a word that is not known": (ended(7, why="something_new"), 7, "(exit status 7)"),
}


@pytest.mark.parametrize(("details", "status", "said"), FAILED.values(), ids=FAILED)
def test_a_failed_job_never_reports_0(details, status, said, tmp_path):
    assert fetch(failed(details), tmp_path) == FetchResult(status, 0.0, 0.0)
    text = (tmp_path / "job.err").read_text()
    assert said in text
    assert f"instance {INSTANCE}: Error while computing" in text


def test_a_project_that_can_tell_of_a_failed_job_is_listened_to(tmp_path):
    script = failed(ended(9), completed(9, result="error_resultid"))
    assert fetch(script, tmp_path) == FetchResult(9, 2.5, 1.5)
    assert (tmp_path / "job.err").read_text().endswith("\nsaid\n")


def failed_with_uploads(*numbers):
    script = failed(ended(9))
    script.replies |= {
        "query_job": instance(*map(len, uploaded(*numbers)), state="Error while computing"),
        "get_templates": templates("out0", "out1", "out2"),
    }
    script.files = uploaded(*numbers)
    return script


def test_of_a_failed_job_the_outputs_come_that_its_last_instance_uploaded(tmp_path):
    script = failed_with_uploads(1)
    assert fetch(script, tmp_path).exit_status == 9
    assert names(tmp_path) == ["job.err", "out1"]
    assert (tmp_path / "out1").read_text() == "file 1"
    assert "(exit status 9)" in (tmp_path / "job.err").read_text()


def test_a_failed_job_is_told_without_outputs_that_the_project_has_deleted(tmp_path, caplog):
    script = failed_with_uploads(1)
    script.page = b"ERROR: no such file: ../upload/1/b#1.0_0_r799338679_0"
    assert fetch(script, tmp_path).exit_status == 9
    assert names(tmp_path) == ["job.err"]
    assert "No outputs of the failed job b#1.0 are fetched" in caplog.text


def test_outputs_of_a_failed_job_wait_for_a_project_that_is_down_but_not_for_ever(tmp_path):
    script = failed_with_uploads(1)
    script.page = b"<html>The project is down for maintenance</html>"
    with pytest.raises(RpcError) as raised:
        fetch(script, tmp_path)
    assert raised.value.passes
    request = FetchRequest(JOB, str(tmp_path), "job.err", "ALL")
    assert fetch_failed(script.context(), request, "é failed", is_late=True) == len(
        b"\xc3\xa9 failed"
    )
    assert (tmp_path / "job.err").read_text() == "é failed"
    unwanted = FetchRequest(JOB, str(tmp_path), None, "ALL")
    assert fetch_failed(script.context(), unwanted, "it failed", is_late=True) == 0


def test_a_failed_jobs_instances_need_not_be_known(tmp_path):
    script = failed(ended(9))
    script.replies["query_job"] = error("no such job")
    assert fetch(script, tmp_path).exit_status == 9


NO_STATUS = {
    "queued": ("<status>queued</status>", r"not finished .*queued"),
    "running": ("<status>in_progress</status>", r"not finished .*in_progress"),
    "nothing said": ("", "not finished"),
    "cancelled": (ended(why="cancelled"), "does not know its exit status"),
    "never sent": (ended(why="couldnt_send_result"), "could take it.*does not know its exit st"),
}


@pytest.mark.parametrize(("details", "words"), NO_STATUS.values(), ids=NO_STATUS)
def test_without_an_exit_status_there_is_an_error(details, words, tmp_path):
    with pytest.raises(OutputError, match=words):
        fetch(failed(details), tmp_path)
    assert names(tmp_path) == []


def test_a_failed_job_whose_name_tells_no_batch_is_found(tmp_path):
    script = failed(ended(9))
    script.replies["query_batches"] = "".join(
        f"<batch>{batch(number, f'b{number}', 1)}</batch>" for number in (5, 7, 6)
    )

    def query_batch(asked):
        assert asked["batch_id"], "a foreign name is no batch's"
        if asked["batch_id"] != ["6"]:
            return batch(int(asked["batch_id"][0]), "other", 1, job(9, "other"))
        return batch(6, "b6", 2, job(1, "foreign", 0, ended(9)))

    script.replies["query_batch"] = query_batch
    assert fetch(script, tmp_path, name="foreign").exit_status == 9
    # The newest first, and none below the one that has it.
    assert {asked["batch_id"][0] for asked in script.arguments("query_batch")} == {"7", "6"}


def test_a_failed_job_that_is_nowhere_is_the_projects_error(tmp_path):
    script = Script({"query_completed_job": FATAL, "query_batches": ""})
    with pytest.raises(RpcError, match="asked to show an ended job"):
        fetch(script, tmp_path, name="foreign")


def test_a_batch_name_that_another_account_has_does_not_hide_the_job(tmp_path):
    script = done("out0")
    script.replies["query_batches"] = f"<batch>{batch(8, 'b', 1)}</batch>"
    script.replies["query_batch"] = lambda asked: (
        batch(8, "b", 2, job(1, JOB, 119)) if asked["batch_id"] else error("not owner of batch")
    )
    assert fetch(script, tmp_path).exit_status == 0
    assert script.count("workunit_file") == 0


def test_a_bad_authenticator_is_reported_at_once(tmp_path):
    script = Script({"query_batch": error("bad authenticator")})
    with pytest.raises(RpcError, match="bad authenticator"):
        fetch(script, tmp_path)
    assert len(script.asked) == 1


def test_a_job_without_a_result_that_is_in_no_batch_is_an_error(tmp_path):
    told = completed(result="error_resultid")
    script = Script({"query_completed_job": told, "query_batches": ""})
    with pytest.raises(OutputError, match=r"has no result .* nothing to fetch"):
        fetch(script, tmp_path, name="foreign")


def test_where_the_instance_is_not_shown_the_file_is_asked_for_by_its_job(tmp_path):
    script = done("out0", "out1", present=(0, 1))
    script.replies["query_job"] = ""
    script.files = {(JOB, number): file for (_, number), file in script.files.items()}
    fetch(script, tmp_path)
    assert (tmp_path / "out1").read_text() == "file 1"
    assert script.count("result_file") == 0


HTML = {"Content-Type": "text/html; charset=UTF-8"}


def moved(reply):
    """A job whose output is not where it was uploaded; ``reply`` comes from get_output3.php."""
    script = done("out0")
    script.replies["query_job"] = instance(3)
    script.page, script.moved = GONE, reply
    return script


def test_an_output_that_an_assimilator_has_moved_comes_with_the_cookie_of_a_login(tmp_path):
    script = moved(Reply(b"one", FILE))
    fetch(script, tmp_path)
    assert (tmp_path / "out0").read_text() == "one"
    wanted = {"action": ["get_file"], "result_id": ["119"], "index": ["0"], "download": ["1"]}
    assert script.arguments("get_output3") == [wanted]


@pytest.mark.parametrize(
    "reply",
    [
        Reply(b"", FILE | {"Content-Length": "0"}),
        Reply(b"<b>Warning</b>: filesize(): stat failed", FILE | {"Content-Length": ""}),
        Reply(b"one", FILE | {"Content-Disposition": f"attachment; filename={JOB}__file_out1"}),
        Reply(b"<html><title>Not Found</title></html>", HTML, status=404),
    ],
    ids=["empty", "no length", "another output", "no such page"],
)
def test_what_is_not_the_moved_output_is_not_delivered(tmp_path, reply):
    with pytest.raises(OutputError, match="has deleted output number 0"):
        fetch(moved(reply), tmp_path)
    assert not (tmp_path / "out0").exists()


LOGIN = Reply(b"", {"Location": "/test/login_form.php?next_url=x"}, status=302)
ERROR_PAGE = Reply(b"<html><title>Unable to handle request</title></html>", HTML)


@pytest.mark.parametrize(
    ("reply", "why"),
    [(LOGIN, "it wants a login"), (ERROR_PAGE, "Unable to handle")],
    ids=["login", "error page"],
)
def test_a_moved_output_that_is_not_handed_out_is_told_with_what_the_admin_does(
    tmp_path, reply, why
):
    with pytest.raises(OutputError, match=why) as caught:
        fetch(moved(reply), tmp_path)
    assert "sample_dummy_assimilator -d 3 --app NAME" in str(caught.value)
    assert "no_delete" not in str(caught.value)


def test_an_archive_that_is_none_leaves_only_stderr(tmp_path):
    script = done("out.ZIP")
    script.files[INSTANCE, 0] = (f"{INSTANCE}_r1_0", b"no archive")
    with pytest.raises(OutputError, match=r"output 'out.ZIP' of job 'b#1.0' is not a readable zip"):
        fetch(script, tmp_path)
    assert names(tmp_path) == ["job.err"]


def zipped(*members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data)
    script = done("out.zip")
    script.files[INSTANCE, 0] = (f"{INSTANCE}_r1_0", buffer.getvalue())
    return script


def test_an_archives_directories_are_made(tmp_path):
    fetch(zipped(("a/b/", b""), ("c/d/e", b"x")), tmp_path)
    assert (tmp_path / "a/b").is_dir()
    assert (tmp_path / "c/d/e").read_bytes() == b"x"


def test_a_damaged_member_leaves_no_other_behind(tmp_path):
    script = zipped(("good", b"good"), ("bad", b"the very text"))
    name, data = script.files[INSTANCE, 0]
    script.files[INSTANCE, 0] = (name, data.replace(b"the very text", b"the vary text"))
    with pytest.raises(OutputError, match="member 'bad' is damaged"):
        fetch(script, tmp_path)
    assert names(tmp_path) == ["job.err"]


def test_an_archive_that_is_optional_may_be_missing(tmp_path):
    fetch(done("out.zip", optional=("out.zip",), present=()), tmp_path)
    assert names(tmp_path) == ["job.err"]
    with pytest.raises(OutputError, match="is missing"):
        fetch(done("out.zip", present=()), tmp_path)
