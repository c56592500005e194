"""``local-project create-work`` and ``stage-file``."""

import re

import pytest

from tests.cli.conftest import empty_batch, rows


def job(directory, name):
    (row,) = rows(directory, "SELECT * FROM workunit WHERE name = ?", name)
    return row


def test_create_work_prints_the_names_of_the_jobs(do, directory):
    assert do("create-work", "uppercase", "--wu_name", "first", "data.txt") == (0, "first\n", "")
    status, out, _ = do("create-work", "uppercase", "data.txt")
    assert status == 0
    assert out.startswith("uppercase_")
    assert job(directory, out.strip())["batch"] == 0


def test_options_are_boincs_and_stand_anywhere(do, directory):
    words = ["data.txt", "--wu_name=boincs", "--command_line", "--sleep 1", "--app_version_num=2"]
    assert do("create-work", "uppercase", *words) == (0, "boincs\n", "")
    made = job(directory, "boincs")
    assert "<command_line>\n--sleep 1\n</command_line>" in str(made["xml_doc"])
    assert made["app_version_num"] == 2
    assert do("create-work", "uppercase", "--command_line")[0] == 2


def test_an_option_counts_where_the_template_leaves_it_open(do, directory, tmp_path):
    words = ["uppercase", "data.txt", "--delay_bound", "60", "--min_quorum", "1"]
    assert do("create-work", *words, "--wu_name", "overruled") == (0, "overruled\n", "")
    assert job(directory, "overruled")["delay_bound"] == 86400.0
    text = (directory / "templates/uppercase_in").read_text()
    own = tmp_path / "own_in"
    own.write_text(re.sub("<delay_bound>.*</delay_bound>", "", text))
    words += ["--wu_name", "open", "--wu_template", str(own)]
    assert do("create-work", *words) == (0, "open\n", "")
    assert job(directory, "open")["delay_bound"] == 60.0


def test_a_remote_file_has_its_place_among_the_files(do, directory):
    remote = ["--remote_file", "http://127.0.0.1:1/x", "5", "abc"]
    for name, files in (("rf1", [*remote, "data.txt"]), ("rf2", ["data.txt", *remote])):
        assert do("create-work", "multi", "--wu_name", name, *files)[0] == 0
    documents = [str(job(directory, name)["xml_doc"]) for name in ("rf1", "rf2")]
    places = [text.index("js_abc") < text.index("data.txt") for text in documents]
    assert places == [True, False]
    status, _, errors = do("create-work", "multi", "data.txt", "--remote_file", "http://h/x", "5")
    assert (status, "expected URL NBYTES MD5" in errors) == (2, True)
    status, _, errors = do("create-work", "multi", "--remote_file", "http://h/x", "big", "abc")
    assert (status, "http://h/x big abc was given; expected URL" in errors) == (2, True)


def test_jobs_from_standard_input_take_defaults_from_the_command_line(do, directory):
    lines = (
        '--wu_name in1 --command_line "--sleep 0" data.txt\n\n--wu_name in2 --priority 9 data.txt\n'
    )
    batch_id = empty_batch(directory, "lines")
    words = ["uppercase", "--stdin", "--batch", batch_id, "--priority", "3"]
    assert do("create-work", *words, stdin=lines) == (0, "in1\nin2\n", "")
    made = [job(directory, name) for name in ("in1", "in2")]
    assert [each["priority"] for each in made] == [3, 9]
    assert {str(each["batch"]) for each in made} == {batch_id}
    assert rows(directory, "SELECT njobs FROM batch WHERE name = 'lines'") == [{"njobs": 2}]


def test_a_template_of_a_job_is_kept_as_it_was(do, directory, tmp_path):
    own = tmp_path / "own_in"
    own.write_text((directory / "templates" / "uppercase_in").read_text().replace("86400", "77"))
    words = ["--wu_template", str(own), "--wu_name", "own", "data.txt"]
    assert do("create-work", "uppercase", *words)[0] == 0
    own.write_text("something else")
    assert job(directory, "own")["delay_bound"] == 77
    status, _, errors = do("create-work", "uppercase", "--wu_template", str(own), "data.txt")
    assert status == 1
    assert errors.startswith(f"boinc_gahp: {own}: input template: ")
    status, _, errors = do("create-work", "uppercase", "--wu_template", "/nosuch", "data.txt")
    told = "No such file or directory [BG-LOCAL-PROJECT-TROUBLE]"
    assert (status, errors) == (1, f"boinc_gahp: /nosuch: {told}\n")


@pytest.mark.parametrize(
    "words",
    [
        ["uppercase", "--min_quorum", "two"],
        ["uppercase", "--rsc_fpops_est", "-1"],
        ["uppercase", "--priority", "2147483648"],
        ["uppercase", "--batch", "name", "data.txt"],
        ["uppercase", "--target_host", "volunteer-0", "data.txt"],
        ["uppercase", "--stdin", "data.txt"],
        ["uppercase", "--colour", "red"],
        [],
    ],
    ids=["whole", "real", "large", "batch", "host", "stdin-and-file", "option", "nothing"],
)
def test_a_wrong_command_line_gets_status_2(do, words):
    status, out, errors = do("create-work", *words)
    assert (status, out) == (2, "")
    assert errors.startswith("boinc_gahp local-project create-work: ")
    assert errors.endswith(" boinc_gahp local-project create-work --help tells more\n")
    assert errors.count("\n") == 1


def test_stage_file_says_the_names_and_refuses_other_contents(do, directory, tmp_path):
    one, two = tmp_path / "s1.txt", tmp_path / "s2.txt"
    one.write_text("one")
    two.write_text("two")
    assert do("stage-file", str(one), "--gzip", str(two)) == (0, "s1.txt\ns2.txt\n", "")
    one.write_text("another")
    status, _, errors = do("stage-file", str(one))
    assert (status, "'s1.txt' is staged already" in errors) == (1, True)
    status, _, errors = do("stage-file", str(tmp_path / "absent"))
    told = "No such file or directory [BG-LOCAL-PROJECT-TROUBLE]"
    assert (status, errors) == (1, f"boinc_gahp: {tmp_path}/absent: {told}\n")
    # Nothing would end it but a full disk.
    status, _, errors = do("stage-file", "/dev/zero")
    assert (status, "/dev/zero cannot be staged: expected a file" in errors) == (1, True)
