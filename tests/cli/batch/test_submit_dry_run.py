"""``boinc_gahp batch submit --dry-run`` and ``batch estimate``."""

import re

import pytest

EACH = ("--each", "in??.txt")


@pytest.fixture
def words(here, tag):
    """A submit; there are 15 input files of 100 bytes that the project does not have."""
    for number in range(15):
        (here / f"in{number:02}.txt").write_text(f"{here} {number}".ljust(100, "."))
    return ("submit", "uppercase", "--name", tag)


def test_it_tells_jobs_files_and_the_request_and_sends_nothing(site, batch, words, tag):
    lines = batch.prints(*words, *EACH, "--dry-run").splitlines()
    assert lines[0].startswith(f"Batch '{tag}': 15 jobs of uppercase on 127.0.0.1:")
    assert f"  {tag}_00  in=in00.txt" in lines
    assert "  ... and 5 more" in lines
    assert "Of 15 files the project has 0; 15 would be sent (1.5 kB):" in lines
    assert lines[-1] == "Nothing is wrong. Without --dry-run this is sent."
    assert tag not in {each.name for each in site.rpc.query_batches()}


def test_it_says_that_templates_of_the_project_are_not_looked_at(batch, words):
    asked = (*words, "--input", "in=in00.txt", "--input-template", "project:other")
    told = "Template files on the project cannot be checked from here"
    assert told in batch.prints(*asked, "--dry-run")
    # So sizes are nothing that anybody can promise.
    for more in ([], ["--dry-run"]):
        assert (
            "use the project's template other, whose own values win"
            in batch(*asked, "--delay", "1h", *more)[2]
        )


def test_it_tells_what_the_project_would_keep_of_each_job(batch, words):
    dry = (*words, "--input", "in=in00.txt", "--dry-run")
    out = batch.prints(*dry)
    kept = (
        "Each job has: 1e9 floating-point operations, at most 1e15; 50 MB of memory; "
        "100 MB of disk; 24 h until its deadline."
    )
    assert kept in out.splitlines()
    assert "input template" not in out
    asked = ("--delay", "4242s", "--memory", "300MB", "--disk", "100MB")
    out = batch.prints(*dry, *asked)
    assert kept.replace("50 MB", "300 MB").replace("24 h", "70 min") in out.splitlines()
    assert "1 job needs other values than the input template has, so the request includes a " in out
    plan = batch.json(*dry, *asked)
    told = {each["name"]: (each["least"], each["most"]) for each in plan["sizes"]}
    assert (told["delay_bound"], told["memory_bound"]) == ((4242, 4242), (3e8, 3e8))
    assert plan["jobs_with_template"] == 1


def test_every_kind_of_input_is_shown_as_it_would_be_sent(batch, here, words):
    inputs = [
        f"remote:http://127.0.0.1:1/x,5,{'0' * 32}",
        f"inline:{'0123456789' * 4}",
        "staged:nothing.dat",
    ]
    (here / "rows.jsonl").write_text("".join(f'{{"inputs": {{"in": "{i}"}}}}\n' for i in inputs))
    status, out, err = batch(*words, "--rows", "rows.jsonl", "--dry-run")
    assert (status, "has no file 'nothing.dat'" in err) == (1, True)
    assert re.findall(r"in=(.+?)(?= in=|\s*$)", out, re.MULTILINE) == [
        "http://127.0.0.1:1/x",
        "inline:01234567890123456789 ... 56789",
        "staged:nothing.dat",
    ]


def test_a_file_that_many_projects_do_not_take_is_reported(batch, here, words):
    (here / "large.bin").write_bytes(bytes(3 << 20))
    told = "The largest has 3.1 MB: with PHP's defaults a project takes no file over"
    assert told in batch.prints(*words, "--input", "in=large.bin", "--dry-run")


def test_it_tells_what_is_there_already(batch, words):
    batch.prints(*words, *EACH)
    out = batch.prints(*words, *EACH, "--dry-run")
    assert re.search(r"It is there already \(id \d+\) with all of these jobs; nothing", out)
    assert out.endswith("\nNothing is wrong.\n")
    assert "Of 15 files the project has 15; nothing would be sent.\n" in out
    status, out, err = batch(*words, *EACH, "--dry-run", "--name-jobs", "other{index}")
    assert (status, "holds 15 jobs not in this request" in err) == (1, True)
    assert "The batch would be refused: nothing would be sent." in out


def test_every_wrong_job_is_reported_up_to_ten(batch, here, words):
    rows = "".join(f"j{n},in{n:02}.txt\n" if n < 3 else f"j {n},x\n" for n in range(15))
    (here / "rows.csv").write_text("name,input:in\n" + rows)
    status, out, err = batch(*words, "--rows", "rows.csv", "--dry-run")
    assert status == 1
    assert out.endswith("12 jobs would be refused: nothing would be sent.\n")
    sets, *lines = err.splitlines()
    assert sets.startswith("boinc_gahp: rows.csv: column name sets the jobs' names; ")
    assert lines[0].startswith('boinc_gahp: rows.csv:5: job name "j 3" holds a space')
    assert lines[10:] == ["boinc_gahp: ... and 2 more jobs would be refused"]


def test_as_json_it_is_one_document_with_all_of_it(batch, here, words):
    (here / "rows.jsonl").write_text(
        '{"inputs": {"in": "in00.txt"}}\n{"inputs": {"in": "inline:x"}}\n'
        '{"name": "a b", "inputs": {"in": "staged:nothing.dat"}}\n'
    )
    plan = batch.json(*words, "--rows", "rows.jsonl", "--dry-run", status=1)
    keys = ("app", "good", "refusal", "refusal_code", "id", "jobs", "bytes_to_send")
    assert [plan[key] for key in keys] == ["uppercase", False, None, None, None, 3, 100]
    [problem] = plan["problems"]
    keys = ("job", "place", "code")
    assert [problem[key] for key in keys] == ["a b", "rows.jsonl:3", "BG-JOB-REFUSED"]
    [file] = plan["files"]
    assert (file["path"], file["size"], file["present"]) == ("in00.txt", 100, False)


def test_an_estimate_is_a_time_that_people_read(batch, words):
    asked = ("estimate", "uppercase", *EACH, "--fpops-est", "3e13")
    assert re.fullmatch(
        r"127\.0\.0\.1:\d+ estimates that 15 jobs of uppercase take about \d+ \w+\.\n",
        batch.prints(*asked),
    )
    found = batch.json(*asked)
    assert (found["app"], found["jobs"]) == ("uppercase", 15)
    assert found["seconds"] > 0
