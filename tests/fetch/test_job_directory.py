"""Which outputs go where: rules as data in, data out."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.job_directory import JobDirectory
from boinc_gahp.fetch.placements import Placement, plain_names
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.submit.checks import find_output
from tests.fetch.farm import pairs

DIRECTORY = "/home/me/job"
APP = ("out1.txt", "out2.txt", "res/log")


def placed(mode, specs, outputs=APP, err="job.err", **ad):
    """Return which output goes where, relative to the job's directory."""
    specs = pairs(specs) if isinstance(specs, str) else specs
    place = JobDirectory(FetchRequest("j", DIRECTORY, err, mode, specs, **ad))
    return tuple(
        (item.output, str(item.destination).removeprefix(f"{DIRECTORY}/"))
        for item in place.outputs(plain_names(outputs), None).files
    )


# Request Lines.

ALL = {
    "base names": ("", APP, "out1.txt>out1.txt, out2.txt>out2.txt, res/log>log"),
    "paths where base names are the same": (
        "",
        ("a/log", "b/log", "x"),
        "a/log>a/log, b/log>b/log, x>x",
    ),
    "other names": (
        "out2.txt>renamed one, res/log>/abs/log",
        APP,
        "out1.txt>out1.txt, out2.txt>renamed one, res/log>/abs/log",
    ),
    "nowhere": ("out1.txt>/dev/null", APP, "out2.txt>out2.txt, res/log>log"),
}


@pytest.mark.parametrize(("specs", "outputs", "expected"), ALL.values(), ids=ALL)
def test_all_gives_every_output(specs, outputs, expected):
    assert placed("ALL", specs, outputs) == pairs(expected)


# What a gridmanager sent in a real run (gridmanager-boinc.rst, "FETCH_OUTPUT").
GRIDMANAGER = "out1.txt>renamed one.txt, res/out2.txt>out2.txt, job.out>job.out, job.err>job.err"
SOME = {
    "stdout and stderr appended": (
        GRIDMANAGER,
        "job.err",
        "out1.txt>renamed one.txt, out2.txt>out2.txt",
    ),
    "Out and Err the same": (
        "out1.txt>out1.txt, both.log>logs/both.log",
        "logs/both.log",
        "out1.txt>out1.txt",
    ),
    "Err is /dev/null": (
        "out1.txt>out1.txt, job.out>job.out, null>/dev/null",
        "/dev/null",
        "out1.txt>out1.txt",
    ),
    "an output of stdout's name is fetched": (
        "out1.txt>out1.txt, out2.txt>sub/out2.txt, job.err>job.err",
        "job.err",
        "out1.txt>out1.txt, out2.txt>sub/out2.txt",
    ),
    "the same pair twice": ("out1.txt>a, out1.txt>a", "job.err", "out1.txt>a"),
    "two names": ("out1.txt>a, out1.txt>b", "job.err", "out1.txt>a, out1.txt>b"),
    "full path first, then base name": (
        "x/out1.txt>a, ./out2.txt>b, res/log>c",
        "job.err",
        "out1.txt>a, out2.txt>b, res/log>c",
    ),
    "an output to /dev/null": ("out1.txt>/dev/null, out2.txt>b", "job.err", "out2.txt>b"),
    "nothing": ("", "job.err", ""),
}


@pytest.mark.parametrize(("specs", "err", "expected"), SOME.values(), ids=SOME)
def test_some_gives_what_the_pairs_name(specs, err, expected):
    assert placed("SOME", specs, err=err) == pairs(expected)


UNKNOWN = {
    "before stdout": ("SOME", f"typo>typo, {GRIDMANAGER}"),
    "not under its own name": ("SOME", "job.out>other, job.err>job.err"),
    "not the last": ("SOME", "typo>typo, out1.txt>out1.txt"),
    "the last, without an output": ("SOME", "out1.txt>out1.txt, typo>typo"),
    "the only one": ("SOME", "typo>typo"),
    "with all": ("ALL", "typo>x"),
}


@pytest.mark.parametrize(("mode", "specs"), UNKNOWN.values(), ids=UNKNOWN)
def test_any_other_name_is_an_error_that_lists_the_outputs(mode, specs):
    with pytest.raises(OutputError, match=r"its outputs are: 'out1.txt', 'out2.txt', 'res/log'"):
        placed(mode, specs)


def test_of_very_many_outputs_an_error_lists_some():
    outputs = [f"dir/{number}/out" for number in range(20_000)]
    with pytest.raises(OutputError, match=r"'dir/49/out' and 19950 more$"):
        placed("SOME", "typo>typo, x>y", outputs)


@pytest.mark.parametrize(
    ("mode", "specs", "err", "both"),
    [
        ("SOME", "out1.txt>x, out2.txt>./x", "job.err", "out1.txt and out2.txt"),
        ("ALL", "", "out1.txt", "stderr and out1.txt"),
    ],
    ids=["two outputs", "stderr"],
)
def test_two_files_for_one_name_are_an_error(mode, specs, err, both):
    with pytest.raises(OutputError, match=f"{both} .* different names"):
        placed(mode, specs, err=err)


@pytest.mark.parametrize("name", ["..", ".", "", "/"])
def test_an_output_whose_own_name_is_none_needs_another(name):
    with pytest.raises(OutputError, match="give it another name"):
        placed("ALL", "", [name])
    if name:
        assert placed("ALL", f"{name}>x", [name]) == ((name, "x"),)


@pytest.mark.parametrize("names", [["../a", "b/a"], ["/a", "b/a"]])
def test_a_name_from_the_network_does_not_leave_the_directory(names):
    with pytest.raises(OutputError, match="has no valid name for a file in the job's directory"):
        placed("ALL", "", names)


@pytest.mark.parametrize(
    ("stderr", "path"),
    [
        ("job.err", Path(DIRECTORY, "job.err")),
        ("/var/log/x", Path("/var/log/x")),
        ("/dev/null", None),
        ("NULL", None),
        (None, None),
    ],
)
def test_stderr_goes_where_it_was_asked_for(stderr, path):
    found = JobDirectory(FetchRequest("j", DIRECTORY, stderr, "SOME", ())).outputs({}, None).stderr
    assert (None if found is None else found.destination) == path


names = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=12)
sane = names.filter(lambda name: name not in (".", ".."))


@given(st.lists(sane, unique=True), sane, sane)
def test_whatever_the_outputs_a_gridmanagers_own_pairs_write_no_empty_file(outputs, out, err):
    specs = [(name, name) for name in outputs if name != err] + [(out, out)]
    if err != out:
        specs.append((err, err))
    assert {name for name, _ in placed("SOME", specs, outputs, err)} == set(outputs) - {err}


@given(st.lists(st.tuples(names, names), max_size=4), st.lists(sane, unique=True, max_size=4))
def test_what_is_delivered_was_asked_for(specs, outputs):
    request = FetchRequest("j", DIRECTORY, None, "SOME", specs)
    try:
        placements = JobDirectory(request).outputs(plain_names(outputs), None).files
    except OutputError:
        return
    for item in placements:
        assert isinstance(item, Placement)
        assert item.output in outputs
        assert any(
            find_output(source, dict.fromkeys(outputs, "")) == item.output for source, _ in specs
        )


# Job ads.

LOG = "logs/job.out"
AD = {
    "stdout by its base name": (["a", "job.out"], "", LOG, "a>a, job.out>logs/job.out"),
    "stdout by stdout": (["a", "stdout"], "", LOG, "a>a, stdout>logs/job.out"),
    "stdout by stdout.txt": (["stdout.txt"], "", LOG, "stdout.txt>logs/job.out"),
    "the name wins": (["stdout", "job.out"], "", LOG, "stdout>stdout, job.out>logs/job.out"),
    "no stdout": (["a"], "", LOG, "a>a"),
    "in the directory itself": (["job.out"], "", "job.out", "job.out>job.out"),
    "not wanted": (["a", "stdout"], "", None, "a>a, stdout>stdout"),
    "to nowhere": (["a", "stdout"], "", "/dev/null", "a>a, stdout>stdout"),
    "remapped, too": (["stdout"], "stdout>x", "job.out", "stdout>x, stdout>job.out"),
    "remapped under its name": (["job.out"], "job.out>x", "job.out", "job.out>x, job.out>job.out"),
    "a remap of what is not there": (["a"], "b>c, a>d", "job.out", "a>d"),
    "one file for both streams": (["stdout"], "", "job.err", "stdout>job.err"),
    "one file, without stdout": ([], "", "job.err", ""),
}


@pytest.mark.parametrize(("outputs", "remaps", "out", "expected"), AD.values(), ids=AD)
def test_an_ad_gets_all_outputs_and_stdout_under_its_own_name(outputs, remaps, out, expected):
    assert placed("ALL", remaps, outputs, is_ad=True, stdout=out) == pairs(expected)


LISTED = {
    "stdout, too": (["stdout", "a"], "stdout>stdout", "stdout>stdout, stdout>job.out"),
    "stdout only": (["stdout", "a"], "a>a", "a>a, stdout>job.out"),
    "both streams": (["a"], "a>a, job.out>job.out, job.err>x", "a>a"),
}


@pytest.mark.parametrize(("outputs", "specs", "expected"), LISTED.values(), ids=LISTED)
def test_an_ad_with_a_list_gets_what_is_in_it_and_stdout(outputs, specs, expected):
    ad = {"is_ad": True, "stdout": "job.out"}
    assert placed("SOME", specs, outputs, **ad) == pairs(expected)
    with pytest.raises(OutputError, match="no output 'b'; its outputs are: "):
        placed("SOME", f"{specs}, b>b", outputs, **ad)
