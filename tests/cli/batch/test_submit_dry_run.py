"""``boinc_gahp batch submit --dry-run`` and ``batch estimate``."""

import json
import re

import pytest


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory, with 15 input files of 100 bytes."""
    monkeypatch.chdir(tmp_path)
    for number in range(15):
        (tmp_path / f"in{number:02}.txt").write_text(f"{tmp_path} {number}".ljust(100, "."))
    return tmp_path


def test_it_tells_jobs_files_and_the_request_and_sends_nothing(site, batch, here):
    words = ["submit", "uppercase", "--each", "*.txt", "--name", here.name, "--dry-run"]
    status, out, err = batch(*words)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith(f"Batch '{here.name}': 15 jobs of uppercase on 127.0.0.1:")
    assert f"  {here.name}_00  in=in00.txt" in lines
    assert "  ... and 5 more" in lines
    assert "Of 15 files the project has 0; 15 would be sent (1.5 kB):" in lines
    assert lines[-1] == "Nothing is wrong. Without --dry-run this is sent."
    assert here.name not in {each.name for each in site.rpc.query_batches()}


def test_it_says_that_templates_of_the_project_are_not_looked_at(batch, here):
    words = ["submit", "uppercase", "--each", "*.txt", "--input", "in={path}"]
    words += ["--input-template", "project:other"]
    status, out, err = batch(*words, "--dry-run")
    assert (status, err) == (0, "")
    assert "Template files on the project cannot be checked from here" in out


def test_it_tells_what_the_project_would_keep_of_each_job(site, batch, here):
    words = ["submit", "uppercase", "--input", "in=in00.txt", "--name", here.name]
    dry = [*words, "--dry-run"]
    _, out, _ = batch(*dry)
    kept = (
        "Each job has: 1e9 floating-point operations, at most 1e15; 50 MB of memory; "
        "100 MB of disk; 24 h until its deadline."
    )
    assert kept in out.splitlines()
    assert "input template" not in out
    asked = ["--delay", "4242s", "--memory", "300MB", "--disk", "100MB"]
    _, out, _ = batch(*dry, *asked)
    kept = kept.replace("50 MB", "300 MB").replace("24 h", "70 min")
    assert kept in out.splitlines()
    assert "1 job needs other values than the input template has, so the request includes a " in out
    _, out, _ = batch(*dry, *asked, "--json")
    plan = json.loads(out)
    told = {each["name"]: (each["least"], each["most"]) for each in plan["sizes"]}
    assert (told["delay_bound"], told["memory_bound"]) == ((4242, 4242), (3e8, 3e8))
    assert plan["jobs_with_template"] == 1
    # What is told is what comes.
    assert batch(*words, *asked)[0] == 0
    row = site.project.core.db.connection().execute(
        "SELECT rsc_memory_bound, rsc_disk_bound, delay_bound, rsc_fpops_est FROM workunit "
        "WHERE name = ?",
        (f"{here.name}_0",),
    )
    assert tuple(row.fetchone()) == (3e8, 1e8, 4242, 1e9)


def test_sizes_that_nobody_can_promise_are_refused_with_what_to_do(batch, here):
    words = ["submit", "uppercase", "--input", "in=in00.txt", "--input-template", "project:other"]
    for more in ([], ["--dry-run"]):
        status, _, err = batch(*words, "--delay", "1h", *more)
        assert status == 1
        assert "use the project's template other, whose own values win" in err


def test_every_kind_of_input_is_shown_as_it_would_be_sent(batch, here):
    rows = [
        '{"inputs": {"in": "remote:http://127.0.0.1:1/x,5,%s"}}' % ("0" * 32),
        '{"inputs": {"in": "inline:%s"}}' % ("0123456789" * 4),
        '{"inputs": {"in": "staged:nothing.dat"}}',
    ]
    (here / "rows.jsonl").write_text("\n".join(rows))
    status, out, err = batch(
        "submit", "uppercase", "--rows", "rows.jsonl", "--dry-run", "--name", here.name
    )
    assert status == 1
    shown = re.findall(r"in=(.+?)(?= in=|\s*$)", out, re.MULTILINE)
    assert shown == [
        "http://127.0.0.1:1/x",
        "inline:01234567890123456789 ... 56789",
        "staged:nothing.dat",
    ]
    assert "has no file 'nothing.dat'" in err


def test_a_file_that_many_projects_do_not_take_is_reported(batch, here):
    (here / "large.bin").write_bytes(bytes(3 << 20))
    status, out, _ = batch("submit", "uppercase", "--input", "in=large.bin", "--dry-run")
    assert status == 0
    assert "The largest has 3.1 MB: with PHP's defaults a project takes no file over" in out


def test_it_tells_what_is_there_already(batch, here):
    words = ["submit", "uppercase", "--each", "*.txt", "--name", here.name]
    assert batch(*words)[0] == 0
    status, out, err = batch(*words, "--dry-run")
    assert (status, err) == (0, "")
    assert re.search(r"It is there already \(id \d+\) with all of these jobs; nothing", out)
    assert out.endswith("\nNothing is wrong.\n")
    assert "Of 15 files the project has 15; nothing would be sent.\n" in out
    status, out, err = batch(*words, "--dry-run", "--args", "x", "--name-jobs", "other{index}")
    assert status == 1
    assert "holds 15 jobs not in this request" in err
    assert "The batch would be refused: nothing would be sent." in out


def test_every_wrong_job_is_reported_up_to_ten(batch, here):
    rows = "".join(f"j{n},in{n:02}.txt\n" if n < 3 else f"j {n},x\n" for n in range(15))
    (here / "rows.csv").write_text("name,input:in\n" + rows)
    status, out, err = batch("submit", "uppercase", "--rows", "rows.csv", "--dry-run")
    assert status == 1
    assert out.endswith("12 jobs would be refused: nothing would be sent.\n")
    sets, *lines = err.splitlines()
    assert sets.startswith("boinc_gahp: rows.csv: column name sets the jobs' names; ")
    assert lines[0].startswith('boinc_gahp: rows.csv:5: job name "j 3" holds a space')
    assert lines[10:] == ["boinc_gahp: ... and 2 more jobs would be refused"]


def test_as_json_it_is_one_document_with_all_of_it(batch, here):
    (here / "rows.jsonl").write_text(
        '{"inputs": {"in": "in00.txt"}}\n{"inputs": {"in": "inline:x"}}\n'
        '{"name": "a b", "inputs": {"in": "staged:nothing.dat"}}\n'
    )
    status, out, _ = batch("submit", "uppercase", "--rows", "rows.jsonl", "--dry-run", "--json")
    plan = json.loads(out)
    assert status == 1
    assert {
        key: plan[key] for key in ("app", "good", "refusal", "id", "jobs", "bytes_to_send")
    } == {
        "app": "uppercase",
        "good": False,
        "refusal": None,
        "id": None,
        "jobs": 3,
        "bytes_to_send": 100,
    }
    [problem] = plan["problems"]
    assert (problem["job"], problem["place"]) == ("a b", "rows.jsonl:3")
    assert (problem["code"], plan["refusal_code"]) == ("BG-JOB-REFUSED", None)
    assert [(each["path"], each["size"], each["present"]) for each in plan["files"]] == [
        ("in00.txt", 100, False)
    ]


def test_an_estimate_is_a_time_that_people_read(batch, here):
    words = ["estimate", "uppercase", "--each", "*.txt", "--fpops-est", "3e13"]
    status, out, err = batch(*words)
    assert (status, err) == (0, "")
    assert re.fullmatch(
        r"127\.0\.0\.1:\d+ estimates that 15 jobs of uppercase take about \d+ \w+\.\n", out
    )
    status, out, _ = batch(*words, "--json")
    found = json.loads(out)
    assert (found["app"], found["jobs"]) == ("uppercase", 15)
    assert found["seconds"] > 0
