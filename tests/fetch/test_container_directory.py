"""The outputs of container jobs: which files there are, and where each is delivered."""

import logging
import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from boinc_gahp.config.settings import JobSettings
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.container_directory import ProgramNotRun
from boinc_gahp.fetch.types import FetchResult
from tests.fetch.jobs import (
    ALL,
    EXIT,
    OUT,
    PACKED,
    Job,
    cancel_at_every_step,
    found,
    note_syncs,
    output_template,
    tar,
)

STREAMS = {"job.err": b"complained\n", "job.out": b"said\n"}


def test_what_the_program_wrote_is_where_the_job_wants_it(tmp_path):
    one = Job({**ALL, "work/result.json": b"{}"}, ["result.json"])
    assert one.fetch(tmp_path) == FetchResult(0, 2.5, 1.5, len("complained\nsaid\n{}"))
    assert found(tmp_path) == {**STREAMS, "result.json": b"{}"}


#: 128 is the largest that no signal explains.
STATUSES = [(b"0\n", 0), (b"3\n", 3), (b"128\n", 128), (b"137\n", -9), (b"143", -15)]


@pytest.mark.parametrize(("told", "status"), STATUSES)
def test_the_jobs_own_file_tells_the_exit_status(told, status, tmp_path):
    assert Job({**ALL, EXIT: told}).fetch(tmp_path).exit_status == status
    assert found(tmp_path) == STREAMS


def test_streams_without_a_file_are_empty(tmp_path):
    Job({EXIT: b"0"}, out="logs/deep/out", err="err").fetch(tmp_path)
    assert found(tmp_path) == {"err": b"", "logs": None, "logs/deep": None, "logs/deep/out": b""}


@pytest.mark.parametrize("nowhere", [None, "/dev/null"])
def test_streams_that_are_not_wanted_are_not_kept(nowhere, tmp_path):
    Job(ALL, out=nowhere, err=nowhere).fetch(tmp_path)
    assert found(tmp_path) == {}


def test_one_file_for_both_streams_is_what_the_container_wrote_as_stdout(tmp_path):
    Job({EXIT: b"0", OUT: b"both\n"}, out="logs/all", err="logs/../logs/all").fetch(tmp_path)
    assert found(tmp_path) == {"logs": None, "logs/all": b"both\n"}


def test_an_output_in_a_directory_has_its_base_name(tmp_path):
    Job({**ALL, "work/res/d/o": b"x"}, ["res/d/o"]).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "o": b"x"}


DIRECTORY = {"./out/plots/": None, "./out/plots/a.png": b"a", "./out/plots/deep/.b": b"b"}
PLOTS = {"plots": None, "plots/a.png": b"a", "plots/deep": None, "plots/deep/.b": b"b"}


def test_an_output_that_is_a_directory_comes_with_all_that_is_in_it(tmp_path):
    files = {**ALL, PACKED: tar({**DIRECTORY, "./out/plots/empty/": None})}
    one = Job(files, ["out/plots"])
    for _ in range(2):
        one.fetch(tmp_path)
        assert found(tmp_path) == {**STREAMS, **PLOTS, "plots/empty": None}


def test_an_empty_directory_is_an_output_too(tmp_path):
    one = Job({**ALL, PACKED: tar({"./plots/": None})}, ["plots"])
    for _ in range(2):
        one.fetch(tmp_path, cache=tmp_path.parent / f"{tmp_path.name}-cache")
        assert found(tmp_path) == {**STREAMS, "plots": None}


def test_a_file_in_the_archive_is_an_output_like_others(tmp_path):
    files = {**ALL, PACKED: tar({"./it's": b"1", "d/x y": b"2"}), "work/r": b"3"}
    Job(files, ["it's", "d/x y", "r"], (("it's", "that"),)).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "that": b"1", "x y": b"2", "r": b"3"}


def test_of_a_directory_with_a_slash_its_contents_are_wanted(tmp_path, caplog):
    files = {**ALL, PACKED: tar({"./plots/a": b"a", "./plots/sub/b": b"b", "./plots/.c": b"c"})}
    Job(files, ["plots/"]).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "a": b"a", "sub": None, "sub/b": b"b"}
    assert "'.c' and 0 more are left out" in caplog.text


@pytest.mark.parametrize("by", ["out/plots", "plots"])
def test_a_remap_moves_a_whole_directory(by, tmp_path):
    home, data = tmp_path / "home", tmp_path / "data"
    home.mkdir()
    data.mkdir()
    one = Job({**ALL, PACKED: tar(DIRECTORY)}, ["out/plots"], ((by, f"{data}/p1"),))
    for _ in range(2):
        one.fetch(home, cache=tmp_path / "cache")
        assert found(home) == STREAMS
        assert found(data) == {name.replace("plots", "p1", 1): is_ for name, is_ in PLOTS.items()}


def test_a_remap_to_a_directory_keeps_the_base_name(tmp_path):
    (tmp_path / "data").mkdir()
    files = {**ALL, PACKED: tar(DIRECTORY), "work/r": b"r", "work/s": b"s"}
    remaps = (("plots", "data/"), ("r", "data"), ("s", "data/t"))
    Job(files, ["out/plots", "r", "s"], remaps).fetch(tmp_path)
    moved = {f"data/{name}": is_ for name, is_ in PLOTS.items()}
    assert found(tmp_path) == {
        **STREAMS, **moved, "data": None, "data/r": b"r", "data/t": b"s",
    }  # fmt: skip


def test_a_missing_directory_above_a_remap_is_named(tmp_path):
    one = Job({**ALL, PACKED: tar(DIRECTORY)}, ["out/plots"], (("plots", "no/p1"),))
    with pytest.raises(OutputError, match=r"no' does not exist: create it"):
        one.fetch(tmp_path)
    assert found(tmp_path) == STREAMS


def test_what_goes_to_dev_null_is_not_kept_and_not_missed(tmp_path):
    remaps = (("plots", "/dev/null"), ("a", "/dev/null"), ("b", "/dev/null"))
    files = {**ALL, PACKED: tar(DIRECTORY), "work/a": b"a"}
    Job(files, ["out/plots", "a", "b"], remaps).fetch(tmp_path)
    assert found(tmp_path) == STREAMS


def test_what_is_remapped_to_dev_null_does_not_come_out_of_a_directory(tmp_path):
    """So no volunteer replaces the job's program in the job's directory."""
    members = {"results/fit.py": b"rm", "results/x": b"x", "results/d/fit.py": b"y"}
    Job({**ALL, PACKED: tar(members)}, ["results/"], (("fit.py", "/dev/null"),)).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "d": None, "d/fit.py": b"y", "x": b"x"}


def test_a_member_with_very_many_directories_is_left_out_soon(tmp_path):
    members = {f"results/{'a/' * 90_000}{number}": b"" for number in range(20)}
    files = {**ALL, PACKED: tar({**members, "other": b"x"})}
    Job(files, ["results", "other"], (("results", "/dev/null"),)).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "other": b"x"}


def test_an_output_that_is_in_another_one_is_delivered_twice(tmp_path):
    files = {**ALL, PACKED: tar({"a/b/x": b"x", "a/y": b"y"})}
    Job(files, ["a", "a/b"]).fetch(tmp_path)
    assert found(tmp_path) == {
        **STREAMS, "a": None, "a/b": None, "a/b/x": b"x", "a/y": b"y", "b": None, "b/x": b"x",
    }  # fmt: skip


# -- no outputs named


def test_without_names_new_files_are_delivered_and_hidden_ones_only_if_they_are_named(
    tmp_path, caplog
):
    members = {"./": None, "./a": b"a", "./b": b"b", "./.bashrc": b"rm", "./.keep": b"k"}
    remaps = (("b", "renamed"), (".keep", ".keep"), ("not there", "x"))
    Job({**ALL, PACKED: tar(members)}, None, remaps).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "a": b"a", "renamed": b"b", ".keep": b"k"}
    assert "'.bashrc' and 0 more are left out" in caplog.text


def test_without_names_and_without_new_files_there_are_the_streams(tmp_path):
    assert Job(ALL, None).fetch(tmp_path).exit_status == 0
    assert found(tmp_path) == STREAMS


def test_without_names_a_member_in_a_directory_is_refused(tmp_path):
    with pytest.raises(OutputError, match=r"member 'd/a' is in a directory, and the job names no"):
        Job({**ALL, PACKED: tar({"a": b"", "d/a": b""})}, None).fetch(tmp_path)
    assert found(tmp_path) == STREAMS


# -- what is missing


def test_a_good_program_without_its_output_is_an_error_that_names_all_of_them(tmp_path):
    one = Job({**ALL, "work/b": b"b"}, ["result.json", "b", "out/plots"])
    with pytest.raises(OutputError) as error:
        one.fetch(tmp_path)
    assert str(error.value) == (
        "the program ended with status 0, but did not make 'result.json', 'out/plots'"
    )
    assert found(tmp_path) == {**STREAMS, "b": b"b"}


def test_of_very_many_missing_outputs_some_are_named(tmp_path):
    with pytest.raises(OutputError, match=r"'o9' and 20 more$"):
        Job(ALL, [f"o{number}" for number in range(30)]).fetch(tmp_path)


@pytest.mark.parametrize("told", [b"1", b"139"])
def test_after_another_end_what_there_is_is_delivered(told, tmp_path):
    files = {**ALL, EXIT: told, "work/b": b"b", PACKED: tar(DIRECTORY)}
    assert Job(files, ["a", "b", "out/plots"]).fetch(tmp_path).exit_status in {1, -11}
    assert found(tmp_path) == {**STREAMS, "b": b"b", **PLOTS}


def test_the_standard_streams_may_stand_in_the_list(tmp_path):
    Job({**ALL, "work/a": b"a"}, ["a", "job.out", "job.err"]).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "a": b"a"}


def test_what_was_there_before_is_no_output_of_this_program(tmp_path):
    (tmp_path / "plots").mkdir()
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(OutputError, match="did not make 'plots', 'a'"):
        Job(ALL, ["plots", "a"]).fetch(tmp_path)
    assert Job({**ALL, EXIT: b"3"}, ["plots", "a"]).fetch(tmp_path).exit_status == 3
    assert found(tmp_path) == {**STREAMS, "plots": None, "a": b"old"}


def test_a_stream_may_be_in_a_directory_that_is_an_output(tmp_path):
    files = {**ALL, PACKED: tar(DIRECTORY)}
    Job(files, ["out/plots"], out="plots/job.out").fetch(tmp_path)
    assert found(tmp_path) == {**PLOTS, "plots/job.out": b"said\n", "job.err": b"complained\n"}


def test_a_file_by_itself_counts_more_than_one_in_the_archive(tmp_path):
    files = {**ALL, "work/a": b"alone", PACKED: tar({"a": b"packed", "b/x": b"x"})}
    Job(files, ["a", "b"]).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "a": b"alone", "b": None, "b/x": b"x"}


def test_if_all_outputs_are_files_there_is_no_request_for_the_archive(tmp_path):
    one = Job({**ALL, "work/a": b"a", "work/b": b"b"}, ["a", "b"])
    one.fetch(tmp_path)
    asked = sorted(asked["file_num"] for asked in one.script.arguments("result_file"))
    assert asked == [["0"], ["1"], ["2"], ["3"], ["4"]]


NOT_RUN = {
    "no program": (b"no-program ./fit\n", r"no program './fit'"),
    "no executable": (b"not-executable ./fit\n", r"'./fit' cannot be executed"),
    "no tar": (b"no-tar\n", "the image has no tar"),
    "nothing": (b"", "did not tell how the program ended"),
    "nonsense": (b"\xff\0", "did not tell how the program ended"),
}


@pytest.mark.parametrize(("told", "why"), NOT_RUN.values(), ids=NOT_RUN)
def test_a_program_that_was_not_run_is_an_error_and_its_streams_are_there(told, why, tmp_path):
    files = {**ALL, EXIT: told, "work/b": b"b", PACKED: b"nonsense"}
    with pytest.raises(ProgramNotRun, match=why):
        Job(files, ["b"]).fetch(tmp_path)
    assert found(tmp_path) == STREAMS


def test_an_end_that_is_very_long_is_not_read_into_memory(tmp_path):
    with pytest.raises(OutputError, match=r"'_exit' of job 'b#1.0' is larger than the 65536 bytes"):
        Job({**ALL, EXIT: b"0" * 70_000}).fetch(tmp_path)
    assert found(tmp_path) == {}


def test_a_template_without_the_file_for_the_end_is_no_fault(tmp_path):
    one = Job(ALL)
    one.wanted = replace(one.wanted, output_template=output_template(OUT, optional=(OUT,)))
    with pytest.raises(ProgramNotRun):
        one.fetch(tmp_path)


def test_a_directory_that_does_not_exist_is_not_made(tmp_path):
    with pytest.raises(OutputError, match=r"the job's directory '.*gone' cannot be used"):
        Job(ALL).fetch(tmp_path / "gone")
    assert found(tmp_path) == {}


# -- the archive comes from a stranger


BAD = {
    "not asked for": ("other/x", "is not in an output of the job"),
    "a name that begins so": ("plotsx", "is not in an output of the job"),
    "above": ("../plots/x", "not a path below"),
    "a name of ours": ("plots/.boinc_gahp-1.part", "reserved"),
}


@pytest.mark.parametrize(("member", "why"), BAD.values(), ids=BAD)
def test_of_an_archive_with_one_bad_member_nothing_arrives(member, why, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    one = Job({**ALL, PACKED: tar({"plots/a": b"a", member: b"x"})}, ["plots"])
    with pytest.raises(OutputError, match=why):
        one.fetch(home)
    assert found(home) == STREAMS
    assert set(tmp_path.iterdir()) == {home}


def test_of_an_archive_that_is_too_large_nothing_arrives(tmp_path):
    one = Job({**ALL, PACKED: tar({"plots/a": b"a" * 60, "plots/b": b"b" * 60})}, ["plots"])
    with pytest.raises(OutputError, match=r"larger than 100 bytes \(unzip_max_bytes"):
        one.fetch(tmp_path, settings=JobSettings(unzip_max_bytes=100))
    with pytest.raises(OutputError, match="more than 2 members"):
        one.fetch(tmp_path, settings=JobSettings(unzip_max_files=2))
    assert found(tmp_path) == STREAMS


def test_nothing_is_written_through_a_link(tmp_path):
    home, other = tmp_path / "home", tmp_path / "other"
    (home / "plots").mkdir(parents=True)
    other.mkdir()
    (home / "plots/deep").symlink_to(other)
    with pytest.raises(OutputError, match="deep' is a symbolic link"):
        Job({**ALL, PACKED: tar(DIRECTORY)}, ["out/plots"]).fetch(home)
    assert found(other) == {}


def test_a_directory_where_the_job_has_a_file_is_reported(tmp_path):
    (tmp_path / "plots").write_text("mine")
    with pytest.raises(OutputError, match=r"plots.* cannot be written: a part of its path is not"):
        Job({**ALL, PACKED: tar(DIRECTORY)}, ["out/plots"]).fetch(tmp_path)
    assert found(tmp_path) == {**STREAMS, "plots": b"mine"}


def test_two_outputs_for_one_name_are_an_error(tmp_path):
    two = Job({**ALL, "work/a/log": b"1", "work/b/log": b"2"}, ["a/log", "b/log"])
    stream = Job({**ALL, PACKED: tar({"plots/log": b"1"})}, ["plots"], out="plots/log")
    for each in (two, stream):
        with pytest.raises(OutputError, match="would both be written to"):
            each.fetch(tmp_path)


def test_a_file_that_may_be_executed_still_may_and_gets_no_other_right(tmp_path):
    members = {"plots/a": b"a", "plots/b": b"b"}
    packed = tar(members, {"plots/a": 0o6755, "plots/b": 0o6666})
    old = os.umask(0o027)
    try:
        Job({**ALL, PACKED: packed}, ["plots"]).fetch(tmp_path)
    finally:
        os.umask(old)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in members]
    assert modes == [0o740, 0o640]


def test_a_member_goes_to_another_file_system(tmp_path):
    there = Path("/dev/shm")
    if not there.is_dir() or there.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is only one file system")
    target = there / f"boinc_gahp-test-{os.getpid()}"
    packed = tar({"plots/deep/a": b"a"}, {"plots/deep/a": 0o755})
    try:
        one = Job({**ALL, PACKED: packed}, ["plots"], (("plots", str(target)),))
        one.fetch(tmp_path)
        assert found(target) == {"deep": None, "deep/a": b"a"}
        assert (target / "deep/a").stat().st_mode & stat.S_IXUSR
    finally:
        for path in sorted(target.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        target.rmdir()


# -- again, and not at all

EVERYTHING = {**ALL, "work/r": b"r", PACKED: tar({**DIRECTORY, "./out/plots/empty/": None})}
WHOLE = {**STREAMS, **PLOTS, "plots/empty": None, "r": b"r"}


def everything():
    return Job(EVERYTHING, ["r", "out/plots"])


def test_a_repeated_fetch_mends_what_an_earlier_one_put_in_place(tmp_path):
    home, cache = tmp_path / "home", tmp_path / "cache"
    home.mkdir()
    everything().fetch(home, cache=cache)
    (home / "plots/deep/.b").unlink()
    (home / "plots/empty").rmdir()
    one = everything()
    one.fetch(home, cache=cache)
    assert found(home) == WHOLE
    # Whether there is a file where the directory is now has to be asked.
    asked = [asked["file_num"] for asked in one.script.arguments("result_file")]
    assert asked == [["0"], ["4"], ["3"], ["4"]]


def test_nothing_appears_after_a_cancel_at_any_step(tmp_path):
    def cancelled(home, scope):
        everything().fetch(home, scope=scope)

    cancel_at_every_step(cancelled, tmp_path, WHOLE, {})


def test_all_directories_are_on_the_disk(tmp_path, monkeypatch):
    synced = note_syncs(tmp_path, monkeypatch)
    everything().fetch(tmp_path)
    assert {"", "/plots", "/plots/deep"} <= set(synced)


def test_the_job_line_of_the_log_does_not_grow_with_the_archive(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    members = {f".{number}": b"" for number in range(1000)}
    Job({**ALL, PACKED: tar(members)}, None).fetch(tmp_path)
    assert len(caplog.text) < 2000
