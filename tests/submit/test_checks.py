"""What is refused before anything is created, and what is not."""

import pytest
from hypothesis import given, strategies as st
from lxml import etree

from boinc_gahp.errors import JobRefused
from boinc_gahp.localproject.store import valid_physical_name
from boinc_gahp.rpc._build import submission_document
from boinc_gahp.rpc.types import BatchSubmission, InputFile, JobSubmission
from boinc_gahp.secret import Authenticator
from boinc_gahp.submit import checks
from boinc_gahp.submit.types import InlineFile, LocalFile, StagedFile, by_open_name
from boinc_gahp.templates.reading import read_input_template
from boinc_gahp.text import visible
from tests.submit.requests import own_input

MANGLED = {
    "space": ("a b", "a space"),
    "single quote": ("it's", "a '"),
    "double quote": ('a"b', 'a "'),
    "backslash": ("a\\b", "a \\"),
    "ampersand": ("a&b", "a &"),
    "less than": ("a<b", "a <"),
    "slash": ("a/b", "a /"),
    "newline": ("a\nb", "a newline"),
    "NUL": ("a\x00b", "U+0000"),
    "Latin-1 byte": ("caf\udce9", "0xe9, which is not UTF-8"),
    "empty": ("", "make up a name"),
    "zero, which PHP drops": ("0", "make up a name"),
    "181 bytes": ("x" * 181, "181 bytes"),
    "182 bytes in 91 characters": ("é" * 91, "182 bytes"),
}


@pytest.mark.parametrize(("name", "trouble"), MANGLED.values(), ids=MANGLED)
def test_a_job_name_that_the_project_would_mangle_is_refused_by_name(name, trouble):
    with pytest.raises(JobRefused) as caught:
        checks.check_job_name(name, {"good": "good"})
    assert trouble in str(caught.value)
    assert name[:60] in str(caught.value) or visible(name) in str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["condor#vm.example.org#uppercase#1795261016#12.0", "a@b", "-x", "a%b;c+d", "日本", "x" * 180],
)
def test_names_that_a_gridmanager_makes_and_other_harmless_ones_are_taken(name):
    checks.check_job_name(name, {})
    checks.check_batch_name(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [("job", "JOB"), ("cafe", "café"), ("same", "same")],
    ids=["case", "accent", "equal"],
)
def test_job_names_that_the_project_takes_for_one_are_refused(one, other):
    seen = {}
    checks.check_job_name(one, seen)
    with pytest.raises(JobRefused, match="twice"):
        checks.check_job_name(other, seen)


@pytest.mark.parametrize(
    "name", ["", "0", "it's", 'a"b', "a\\b", "a&b", "<b>", " a", "a ", "x" * 256, "a\tb", "\udcff"]
)
def test_a_batch_name_that_could_not_be_found_again_is_refused(name):
    with pytest.raises(JobRefused):
        checks.check_batch_name(name)


def test_the_longest_line_that_create_work_was_seen_to_read_is_taken_and_one_more_byte_is_not():
    # web-rpcs.rst, "Command lines": 4011 command bytes with a 16-byte name and one 36-byte file.
    checks.check_job_line("n" * 16, "c" * 4011, ["f" * 36])
    with pytest.raises(JobRefused, match="4095 bytes"):
        checks.check_job_line("n" * 16, "c" * 4012, ["f" * 36])


def test_files_go_by_position_when_no_name_matches_and_the_count_is_right():
    named = [("x", LocalFile("/d/x")), ("x", LocalFile("/d/y"))]
    ordered = checks.order_of_inputs(
        "j", by_open_name(named), read_input_template(own_input("in0", "in1")), "multi"
    )
    assert ordered == ("x", "x (2)")


def test_files_for_an_app_without_input_files_are_refused_with_what_to_leave_out():
    with pytest.raises(JobRefused, match='app pi has no input files: leave out "in"'):
        checks.order_of_inputs(
            "j", {"in": LocalFile("/d/x")}, read_input_template(own_input()), "pi"
        )


NOT_FITTING = {
    "a slip": (("im0", "b"), True, '("im0", "b"); "im0" is none of these, did you mean "in0"?'),
    "a slip beside another": (("in1", "IN"), True, '; "IN" is none of these, did you mean "in0"?'),
    "strangers": (("x", "y"), True, '; "x" is none of these'),
    "too few": (("in0",), True, 'the job has 1 ("in0")'),
    "one twice": (("in0", "in0"), False, '("in0", "in0 (2)"); "/d/in0" is none of these'),
    "a stranger": (("in0", "other"), False, '"/d/other" is none of these'),
    "too many": (("in0", "in1", "more"), False, '"/d/more" is none of these'),
    "none": ((), False, "the job has 0 (none)"),
}  # fmt: skip


@pytest.mark.parametrize(("open_names", "by_name", "told"), NOT_FITTING.values(), ids=NOT_FITTING)
def test_files_that_do_not_fit_the_template_are_refused_and_told(open_names, by_name, told):
    files = by_open_name((name, LocalFile(f"/d/{name}")) for name in open_names)
    wanted = read_input_template(own_input("in0", "in1"))
    with pytest.raises(JobRefused) as caught:
        checks.order_of_inputs("job7", files, wanted, "multi", by_name=by_name)
    assert 'job "job7": app multi wants 2 input files ("in0", "in1")' in str(caught.value)
    assert str(caught.value).endswith(told)


def test_a_physical_name_has_at_most_255_characters():
    checks.check_input("j", "in", StagedFile("a" * 255))
    with pytest.raises(JobRefused, match="256 characters"):
        checks.check_input("j", "in", StagedFile("a" * 256))


@pytest.mark.parametrize("filename", ["", "a b", "../x", "a/b", "-x", "x'", "é"])
def test_a_template_file_name_that_is_none_is_refused(filename):
    with pytest.raises(JobRefused, match="expected the name of a file"):
        checks.check_template_filename(filename)


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("/d/a.dat", ".dat"),
        ("/d/a.tar.gz", ".gz"),
        ("/d.x/noext", ""),
        ("/d/.hidden", ""),
        ("/d/a.b c", ""),
        ("/d/a.é", ""),
        ("/d/a.", ""),
        ("/d/a." + "x" * 33, ""),
    ],
)
def test_a_physical_name_takes_over_only_an_extension_that_projects_take(path, wanted):
    assert checks.extension(path) == wanted


@given(st.text(st.characters(), max_size=30))
def test_inline_text_is_refused_or_arrives_as_it_is(text):
    try:
        with checks.naming("j"):
            checks.check_input("j", "in", InlineFile(text))
    except JobRefused as refused:
        assert refused.job_name == "j"  # noqa: PT017
        return
    one = JobSubmission("j", input_files=(InputFile.inline(text),))
    document = submission_document("x", Authenticator("a" * 32), BatchSubmission("a", [one]))
    assert etree.fromstring(document).findtext(".//source") == text


@given(st.text(st.sampled_from("aZ09_.- /\\'\"\n;$é\0"), max_size=6) | st.text(max_size=4))
def test_a_physical_name_that_is_not_refused_is_one_word_that_a_project_takes(name):
    try:
        with checks.naming("j"):
            checks.check_input("j", "in", StagedFile(name))
    except JobRefused as refused:
        assert refused.job_name == "j"  # noqa: PT017
    else:
        assert valid_physical_name(name)
        assert name.split() == [name]
        assert not name.startswith("-")
        assert name not in {".", ".."}
