"""``boinc_gahp batch logs``: what jobs wrote to stderr, and how those that failed ended."""

from boinc_gahp.cli.batch import logs as logs_module
from boinc_gahp.fetch.job_end import JobEnd
from boinc_gahp.rpc.types import JobInfo
from tests.inside import fail_attempts, tell_of_failed_jobs


def test_one_job_has_its_stderr_alone(batch, mixed):
    number, name = mixed
    out = batch.prints("logs", number, f"{name}_0")
    assert out == "starting uppercase args: \ncalled boinc_finish(0)\n"
    assert batch("logs", name, f"{name}_0", "--lines", "1")[1] == "called boinc_finish(0)\n"


def test_several_jobs_have_a_head_each(batch, mixed, monkeypatch):
    tell_of_failed_jobs(monkeypatch)
    number, name = mixed
    first, second = batch.prints("logs", number).split("\n\n")
    assert first.startswith(f"==> {name}_0: done <==\nstarting uppercase")
    assert second.splitlines() == [
        f"==> {name}_1: failed: exit status 7 <==",
        "exit statuses of its instances: 7, 7, 7",
        *(f"instance {name}_1_{n}: Error while computing" for n in range(3)),
        "stderr of the last one that failed:",
        "starting uppercase args: --fail 7",
        "failing with 7 as asked",
    ]
    out = batch.prints("logs", number, "--failed")
    assert out.startswith(f"{name}_1: failed: exit status 7\n")


def test_failed_attempts_at_a_job_that_is_not_over_have_pages(batch, site):
    number, name = site.batch("")
    fail_attempts(site.project, number)
    _, out, err = batch("logs", number, f"{name}_0")
    page = f"{site.project.url}result.php?resultid="
    assert f"\ninstance {name}_0_0: Error while computing  {page}" in out
    assert "Still running: " in out
    assert err.startswith("This project does not tell the stderr of failed jobs")
    assert "No job is over yet" in batch("logs", number)[2]
    batch.prints("abort", number, "--yes")


def test_a_project_that_does_not_tell_has_pages_for_people(batch, site, mixed):
    number, name = mixed
    status, out, err = batch("logs", number, f"{name}_1")
    assert (status, "failing with" in out) == (0, False)
    assert f"{name}_1_2: Error while computing  {site.project.url}result.php?resultid=" in out
    assert err.startswith("This project does not tell the stderr of failed jobs")
    [job] = batch.json("logs", number, "--failed")["jobs"]
    assert (job["why"], job["stderr"], len(job["instances"])) == ("exit status 7", None, 3)


def test_json_has_the_text_as_it_is(batch, mixed):
    number, name = mixed
    done, failed = batch.json("logs", number, "--lines", "1")["jobs"]
    assert (done["job"], done["state"]) == (f"{name}_0", "done")
    assert done["stderr"] == "called boinc_finish(0)\n"
    assert failed["exit_statuses"] == [7, 7, 7]


def test_jobs_that_are_not_over_say_so(batch, site):
    number, name = site.batch("", "")
    assert batch("logs", number) == (0, "", "No job is over yet: 2 waiting.\n")
    assert batch("logs", number, "--failed")[2] == "No job has failed: 2 waiting.\n"
    assert batch("logs", number, f"{name}_0")[1].startswith(f"{name}_0: waiting\n")
    assert "has no job 'nosuch'" in batch.refuses("logs", number, "nosuch")


def test_a_terminal_gets_the_first_jobs_and_all_on_demand(batch, mixed, monkeypatch):
    number, name = mixed
    monkeypatch.setattr(logs_module, "_SHOWN", 1)
    assert f"{name}_1" not in batch.screen("logs", number)
    assert f"{name}_1" in batch.screen("logs", number, "--all")


def test_nothing_in_a_stderr_controls_the_terminal(batch, capsys, mixed, monkeypatch):
    number, _ = mixed
    text = "a\tb\x1b[2J\x1b]0;x\x07\n\u202eright\r50%\r\n\x9b1m\x00"
    log = JobEnd(JobInfo(1, "j\x1b[2J", 7, "done"), stderr=text)
    monkeypatch.setattr("boinc_gahp.api.outputs.logs.logs_of", lambda *_, **__: iter([log, log]))
    head, *lines = batch.prints("logs", number).splitlines()
    assert head == "==> j\\x1b[2J: done <=="
    assert lines[:4] == ["a\tb\\x1b[2J\\x1b]0;x\\x07", "\\u202eright", "50%", "\\x9b1m\\x00"]


def test_jobs_that_wrote_nothing_are_counted_unless_they_are_named(batch, site):
    site.project.add_app("silent", "touch made", outputs="made")
    batch("submit", "silent", "--count", "2", "--name", "silent", "--json")
    site.work()
    told = "2 jobs that ended well wrote nothing to stderr.\n"
    assert batch("logs", "silent") == (0, "", told)
    assert batch("logs", "silent", "silent_1")[2] == "Job silent_1 wrote nothing to stderr.\n"
