"""``local-project create-work`` and ``stage-file``."""

import pytest

from tests.cli.conftest import empty_batch, rows


def job(directory, name):
    (row,) = rows(directory, "SELECT * FROM workunit WHERE name = ?", name)
    return row


def test_create_work_prints_the_names_of_the_jobs(do, directory):
    assert do.prints("create-work", "uppercase", "--wu_name", "first", "data.txt") == "first\n"
    out = do.prints("create-work", "uppercase", "data.txt")
    assert out.startswith("uppercase_")
    assert job(directory, out.strip())["batch"] == 0


def test_options_are_boincs_and_stand_anywhere(do, directory):
    words = ["data.txt", "--wu_name=boincs", "--command_line", "--sleep 1", "--app_version_num=2"]
    assert do.prints("create-work", "uppercase", *words) == "boincs\n"
    made = job(directory, "boincs")
    assert "<command_line>\n--sleep 1\n</command_line>" in str(made["xml_doc"])
    assert made["app_version_num"] == 2


def test_a_remote_file_has_its_place_among_the_files(do, directory):
    remote = ["--remote_file", "http://127.0.0.1:1/x", "5", "abc"]
    for name, files in (("rf1", [*remote, "data.txt"]), ("rf2", ["data.txt", *remote])):
        do.prints("create-work", "multi", "--wu_name", name, *files)
    documents = [str(job(directory, name)["xml_doc"]) for name in ("rf1", "rf2")]
    places = [text.index("js_abc") < text.index("data.txt") for text in documents]
    assert places == [True, False]
    for given in (["http://h/x", "5"], ["http://h/x", "big", "abc"]):
        err = do.refuses("create-work", "multi", "data.txt", "--remote_file", *given, status=2)
        assert "expected URL NBYTES MD5" in err


def test_jobs_from_standard_input_take_defaults_from_the_command_line(do, directory):
    lines = (
        '--wu_name in1 --command_line "--sleep 0" data.txt\n\n--wu_name in2 --priority 9 data.txt\n'
    )
    batch_id = empty_batch(directory, "lines")
    words = ["uppercase", "--stdin", "--batch", batch_id, "--priority", "3"]
    assert do.prints("create-work", *words, stdin=lines) == "in1\nin2\n"
    made = [job(directory, name) for name in ("in1", "in2")]
    assert [each["priority"] for each in made] == [3, 9]
    assert {str(each["batch"]) for each in made} == {batch_id}
    assert rows(directory, "SELECT njobs FROM batch WHERE name = 'lines'") == [{"njobs": 2}]


def test_a_template_of_a_job_is_kept_as_it_was(do, directory, tmp_path):
    own = tmp_path / "own_in"
    own.write_text((directory / "templates" / "uppercase_in").read_text().replace("86400", "77"))
    words = ["--wu_template", str(own), "--wu_name", "own", "data.txt"]
    do.prints("create-work", "uppercase", *words)
    own.write_text("something else")
    assert job(directory, "own")["delay_bound"] == 77
    told = "No such file or directory [BG-LOCAL-PROJECT-TROUBLE]\n"
    for path, said in ((own, f"{own}: input template: "), ("/nosuch", f"/nosuch: {told}")):
        errors = do.refuses("create-work", "uppercase", "--wu_template", path, "data.txt")
        assert errors.startswith(f"boinc_gahp: {said}")


@pytest.mark.parametrize(
    "words",
    [
        ["uppercase", "--min_quorum", "two"],
        ["uppercase", "--rsc_fpops_est", "-1"],
        ["uppercase", "--priority", "2147483648"],
        ["uppercase", "--batch", "name", "data.txt"],
        ["uppercase", "--stdin", "data.txt"],
        ["uppercase", "--colour", "red"],
        ["uppercase", "--command_line"],
        [],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_gets_status_2(do, words):
    errors = do.refuses("create-work", *words, status=2)
    assert errors.startswith("boinc_gahp local-project create-work: ")
    assert errors.endswith(" boinc_gahp local-project create-work --help tells more\n")
    assert errors.count("\n") == 1


def test_stage_file_says_the_names_and_refuses_other_contents(do, directory, tmp_path):
    one, two = tmp_path / "s1.txt", tmp_path / "s2.txt"
    one.write_text("one")
    two.write_text("two")
    assert do.prints("stage-file", one, "--gzip", two) == "s1.txt\ns2.txt\n"
    one.write_text("another")
    assert "'s1.txt' is staged already" in do.refuses("stage-file", one)
    told = "No such file or directory [BG-LOCAL-PROJECT-TROUBLE]"
    absent = tmp_path / "absent"
    assert do.refuses("stage-file", absent) == f"boinc_gahp: {absent}: {told}\n"
    # Nothing would end it but a full disk.
    assert "/dev/zero cannot be staged: expected a file" in do.refuses("stage-file", "/dev/zero")
