"""``boinc_gahp batch show``."""

import hashlib
import re
import time

from boinc_gahp.localproject.backend import cleaning
from tests.inside import fail_attempts
from tests.terminal.screen import plain


def test_a_batch_is_shown_with_its_jobs_and_why_they_failed(site, batch):
    number, name = site.finished("", "--fail 7")
    out = batch.prints("show", name, "--details")
    assert out.startswith(f"Batch {number}  {name}\n")
    assert re.search(r"^  state     complete, 1 failed$", out, re.MULTILINE)
    assert re.search(r"^  cpu time  [\d.]+ s, of all instances$", out, re.MULTILINE)
    assert re.search(r"^  done      ━{30} 100%  2 of 2 jobs over, 1 failed$", out, re.MULTILINE)
    assert re.search(rf"{name}_0  done +[\d.]+ s$", out, re.MULTILINE)
    assert re.search(rf"{name}_1  failed +7, 7, 7 +exit status 7$", out, re.MULTILINE)
    assert out.endswith(
        "2 jobs: 1 done, 1 failed.\n"
        f"1 job failed: 1 × exit status 7 ({name}_1)\n"
        f"More: boinc_gahp batch logs {number} {name}_1\n"
    )


def test_jobs_are_chosen_by_their_state_their_name_and_their_id(site, batch):
    number, name = site.finished("", "--fail 1", "")
    jobs = [job.id for job in site.rpc.iter_jobs(number)]
    assert _jobs(batch.prints("show", number, "--state", "failed")) == [f"{name}_1"]
    both = _jobs(batch.prints("show", number, "--job", f"{name}_2", "--job", jobs[0]))
    assert both == [f"{name}_2", f"{name}_0"]
    assert "None matches." in batch.prints("show", number, "--state", "waiting")
    err = batch.refuses("show", number, "--job", f"{name}_3")
    assert f"has no job '{name}_3'; did you mean '{name}_" in err


def test_a_terminal_shows_the_first_jobs_and_a_pipe_all(site, batch):
    number, name = site.batch(*[""] * 60)
    screen = plain(batch.screen("show", number))
    assert _jobs(screen) == [f"{name}_{index}" for index in range(50)]
    assert "… and 10 more; --all shows them, too.\n\n60 jobs: 60 waiting.\n" in screen
    assert all(len(line) <= 80 for line in screen.splitlines())
    assert len(_jobs(batch.prints("show", number))) == 60
    assert len(_jobs(plain(batch.screen("show", number, "--all")))) == 60
    assert "… and 58 more.\n" in batch.prints("show", number, "--limit", 2)


def test_a_retired_batch_is_found_by_its_id(site, batch):
    number, name = site.batch("")
    site.rpc.retire_batch(batch_id=number)
    out = batch.prints("show", f"id:{number}")
    assert out.startswith(f"Batch {number}  {name}\n")
    assert "retired: the project deletes its files and jobs" in out


def _jobs(text):
    """Return the names of the jobs in a table."""
    table = text.partition("id  job ")[2]
    return re.findall(r"^ *\d+  (\S+) +(?:waiting|running|done|failed)", table, re.MULTILINE)


def test_a_lease_that_ends_soon_is_told_with_what_makes_it_longer(site, batch):
    number, _ = site.batch("", lease=time.time() + 5 * 3600 + 60)
    told = f"The project keeps batch {number} for 5 h more, and may then abort it"
    for action in (["list"], ["show", number]):
        line = next(line for line in batch.prints(*action).splitlines() if told in line)
        assert line.endswith(f"boinc_gahp batch extend {number} --for 30d")
    batch("extend", number, "--for", "30d")
    assert "The project keeps batch" not in batch.prints("list") + batch.prints("show", number)


def test_a_batch_that_its_lease_has_ended_says_so(site, batch):
    number, _ = site.batch("", "", lease=time.time() - 60)
    cleaning.expire_batches(site.project.core, time.time())
    for words in (["show"], ["wait"], ["fetch", site.config.parent / "ended"]):
        action, *more = words
        assert f"The project kept batch {number} until " in batch(action, number, *more)[1]


def test_jobs_are_shown_with_what_was_submitted(batch, here, tag, monkeypatch):
    (here / "rows.csv").write_text("seed,label\n1,a b\n2,\n")
    words = ("--rows", "rows.csv", "--input", "in=in.txt", "--args", "-s {seed}", "--name", tag)
    batch.prints("submit", "uppercase", *words)
    first, second = batch.json("show", tag)["jobs"]
    assert (first["args"], second["args"]) == (["-s", "1"], ["-s", "2"])
    assert first["parameters"] == {"seed": 1, "label": "a b"}
    md5 = hashlib.md5((here / "in.txt").read_bytes(), usedforsecurity=False).hexdigest()
    assert first["inputs"] == [{"name": "in", "md5": md5, "source": str(here / "in.txt")}]
    out = batch.prints("show", tag, "--details")
    assert re.search(rf"{tag}_0 +\w+ +seed=1 label='a b' +-s 1 +in={here}/in.txt\n", out)
    for columns in (80, 160):
        shown = plain(batch.screen("show", tag, columns=columns))
        assert "seed=1 label='a b'" in shown
        assert all(len(line) <= columns for line in shown.splitlines())
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "elsewhere"))
    told = "what was submitted is known only on the machine that did it\n"
    assert told in batch.prints("show", tag)
    (job, _) = batch.json("show", tag)["jobs"]
    assert job["args"] is job["parameters"] is job["inputs"] is None


def test_failed_attempts_are_told_before_any_job_is_done(site, batch):
    number, name = site.batch("")
    fail_attempts(site.project, number)
    out = batch.prints("show", number)
    told = f"No job is done yet, and 1 attempt has failed, the last (job {name}_0): Error while"
    assert f"{told} computing.\n" in out
    assert f"End the batch with: boinc_gahp batch abort {number}\n" in out
    batch.prints("abort", number, "--yes")
