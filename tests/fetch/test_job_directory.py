"""Which outputs go where: rules as data in, data out."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.job_directory import JobDirectory
from boinc_gahp.fetch.names import plain_names
from boinc_gahp.fetch.placements import Placement
from boinc_gahp.fetch.types import FetchRequest
from boinc_gahp.submit.checks import find_output

DIRECTORY = "/home/me/job"
APP = ["out1.txt", "out2.txt", "res/log"]

Pairs = tuple[tuple[str, str], ...]


def some(*specs, stderr="job.err"):
    return FetchRequest("j", DIRECTORY, stderr, "SOME", specs)


def everything(*specs, stderr="job.err"):
    return FetchRequest("j", DIRECTORY, stderr, "ALL", specs)


def chosen(request, outputs=APP):
    placements = JobDirectory(request).outputs(plain_names(outputs), None).files
    return [(item.output, str(item.destination)) for item in placements]


def test_all_gives_every_output_its_base_name_in_the_directory():
    assert chosen(everything()) == [
        ("out1.txt", f"{DIRECTORY}/out1.txt"),
        ("out2.txt", f"{DIRECTORY}/out2.txt"),
        ("res/log", f"{DIRECTORY}/log"),
    ]


def test_outputs_with_the_same_base_name_keep_their_paths():
    assert chosen(everything(), ["a/log", "b/log", "x"]) == [
        ("a/log", f"{DIRECTORY}/a/log"),
        ("b/log", f"{DIRECTORY}/b/log"),
        ("x", f"{DIRECTORY}/x"),
    ]


def test_with_all_specs_rename():
    assert chosen(everything(("out2.txt", "renamed one"), ("res/log", "/abs/log"))) == [
        ("out1.txt", f"{DIRECTORY}/out1.txt"),
        ("out2.txt", f"{DIRECTORY}/renamed one"),
        ("res/log", "/abs/log"),
    ]


def test_with_all_an_unknown_name_is_an_error_that_lists_the_outputs():
    with pytest.raises(OutputError, match=r"no output 'nope'; .*'out1.txt', 'out2.txt', 'res/log'"):
        chosen(everything(("nope", "x")))


def test_with_all_dev_null_drops_an_output():
    assert [name for name, _ in chosen(everything(("out1.txt", "/dev/null")))] == [
        "out2.txt",
        "res/log",
    ]


# What a gridmanager sent in a real run (gridmanager-boinc.rst, "FETCH_OUTPUT").
GRIDMANAGER = (
    ("out1.txt", "renamed one.txt"),
    ("res/out2.txt", "out2.txt"),
    ("job.out", "job.out"),
    ("job.err", "job.err"),
)


@pytest.mark.parametrize(
    ("specs", "stderr", "expected"),
    [
        pytest.param(
            GRIDMANAGER,
            "job.err",
            [("out1.txt", "renamed one.txt"), ("out2.txt", "out2.txt")],
            id="stdout and stderr appended",
        ),
        pytest.param(
            (("out1.txt", "out1.txt"), ("both.log", "logs/both.log")),
            "logs/both.log",
            [("out1.txt", "out1.txt")],
            id="Out and Err the same",
        ),
        pytest.param(
            (("out1.txt", "out1.txt"), ("job.out", "job.out"), ("null", "/dev/null")),
            "/dev/null",
            [("out1.txt", "out1.txt")],
            id="Err is /dev/null",
        ),
        pytest.param(
            (("out1.txt", "out1.txt"), ("out2.txt", "sub/out2.txt"), ("job.err", "job.err")),
            "job.err",
            [("out1.txt", "out1.txt"), ("out2.txt", "sub/out2.txt")],
            id="an output of stdout's name is fetched",
        ),
        pytest.param(
            (("out1.txt", "a"), ("out1.txt", "a")),
            "job.err",
            [("out1.txt", "a")],
            id="the same pair twice",
        ),
        pytest.param(
            (("out1.txt", "a"), ("out1.txt", "b")),
            "job.err",
            [("out1.txt", "a"), ("out1.txt", "b")],
            id="one output under two names",
        ),
        pytest.param(
            (("x/out1.txt", "a"), ("./out2.txt", "b"), ("res/log", "c")),
            "job.err",
            [("out1.txt", "a"), ("out2.txt", "b"), ("res/log", "c")],
            id="full path first, then base name",
        ),
        pytest.param(
            (("out1.txt", "/dev/null"), ("out2.txt", "b")),
            "job.err",
            [("out2.txt", "b")],
            id="an output to /dev/null",
        ),
        pytest.param((), "job.err", [], id="nothing"),
    ],
)
def test_some_gives_what_the_pairs_name(specs, stderr, expected):
    assert chosen(some(*specs, stderr=stderr)) == [
        (name, str(Path(DIRECTORY, path))) for name, path in expected
    ]


@pytest.mark.parametrize(
    "specs",
    [
        pytest.param((("typo", "typo"), *GRIDMANAGER), id="before stdout"),
        pytest.param((("job.out", "other"), ("job.err", "job.err")), id="not under its own name"),
        pytest.param((("typo", "typo"), ("out1.txt", "out1.txt")), id="not the last"),
        pytest.param(
            (("out1.txt", "out1.txt"), ("typo", "typo")), id="the last, without an output"
        ),
        pytest.param((("typo", "typo"),), id="the only one"),
    ],
)
def test_any_other_name_is_an_error_that_lists_the_outputs(specs):
    with pytest.raises(OutputError, match=r"its outputs are: 'out1.txt', 'out2.txt', 'res/log'"):
        chosen(some(*specs))


def test_of_very_many_outputs_an_error_lists_some():
    outputs = [f"dir/{number}/out" for number in range(20_000)]
    with pytest.raises(OutputError) as error:
        chosen(some(("typo", "typo"), ("x", "y")), outputs)
    assert str(error.value).endswith("'dir/49/out' and 19950 more")


def test_two_outputs_for_one_name_are_an_error():
    with pytest.raises(OutputError, match=r"out1.txt and out2.txt .* different names"):
        chosen(some(("out1.txt", "x"), ("out2.txt", "./x")))


def test_an_output_that_would_overwrite_stderr_is_an_error():
    with pytest.raises(OutputError, match=r"stderr and out1.txt .* different names"):
        chosen(everything(stderr="out1.txt"))


@pytest.mark.parametrize("name", ["..", ".", "", "/"])
def test_an_output_whose_own_name_is_none_needs_another(name):
    with pytest.raises(OutputError, match="give it another name"):
        chosen(everything(), [name])
    if name:
        assert chosen(everything((name, "x")), [name]) == [(name, f"{DIRECTORY}/x")]


@pytest.mark.parametrize("names", [["../a", "b/a"], ["/a", "b/a"]])
def test_a_name_from_the_network_does_not_leave_the_directory(names):
    with pytest.raises(OutputError, match="has no valid name for a file in the job's directory"):
        chosen(everything(), names)


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
    found = JobDirectory(some(stderr=stderr)).outputs({}, None).stderr
    assert (None if found is None else found.destination) == path


names = st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=12)
sane = names.filter(lambda name: name not in (".", ".."))


@given(st.lists(sane, unique=True), sane, sane)
def test_whatever_the_outputs_a_gridmanagers_own_pairs_write_no_empty_file(outputs, out, err):
    pairs = [(name, name) for name in outputs if name != err] + [(out, out)]
    if err != out:
        pairs.append((err, err))
    placements = JobDirectory(some(*pairs, stderr=err)).outputs(plain_names(outputs), None).files
    assert {item.output for item in placements} == set(outputs) - {err}


@given(st.lists(st.tuples(names, names), max_size=4), st.lists(sane, unique=True, max_size=4))
def test_what_is_delivered_was_asked_for(specs, outputs):
    try:
        placements = (
            JobDirectory(some(*specs, stderr=None)).outputs(plain_names(outputs), None).files
        )
    except OutputError:
        return
    for item in placements:
        assert isinstance(item, Placement)
        assert item.output in outputs
        assert any(
            find_output(source, dict.fromkeys(outputs, "")) == item.output for source, _ in specs
        )
