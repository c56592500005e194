"""The folder of a program's job, and what strangers may send for it."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.api.family import failed_programs
from boinc_gahp.api.futures.job_futures import JobResult
from boinc_gahp.api.outputs.fetching_batch import BatchFetch
from boinc_gahp.api.outputs.folders import (
    FetchRecord,
    FinishedJob,
    ProgramFolder,
    unknown_template,
    write_note,
)
from boinc_gahp.api.programs import program_batch
from boinc_gahp.errors import OutputError
from boinc_gahp.fetch.types import FetchResult
from boinc_gahp.rpc.types import JobInfo
from tests.localproject.in_containers import local_project  # noqa: F401  (a fixture)

STREAMS = ("_exit", "_stdout", "_stderr")


def folder_of(path, ending, *, named=None, template=None):
    """Return a folder that reads how its program ended."""
    job = FinishedJob("job", 1, 2)
    folder = ProgramFolder(path / "job", job, stderr=True, again=False, named=named)
    folder.own_template = template
    folder.read = lambda *_: ending
    return folder


def wanted(folder, *outputs):
    return folder.outputs({name: name for name in (*STREAMS, *outputs)}, folder.read)


def places(folder, *outputs):
    """Return where outputs go, relative to the folder."""
    found = wanted(folder, *outputs).files
    return {item.output: str(item.destination.relative_to(folder.directory)) for item in found}


def unpacked(folder, *members):
    """Return where an archive's members go, relative to the folder."""
    found = folder.members("the archive", members, ()).files
    return {item.output: str(item.destination.relative_to(folder.directory)) for item in found}


def told(folder):
    return folder.told(FetchRecord("https://boinc.example.org/", 1, 2, {}, None))


def test_outputs_keep_their_directories_and_streams_have_names_of_their_own(tmp_path):
    folder = folder_of(tmp_path, b"0\n")
    assert places(folder, "work/run/result.json", "work/stdout.txt") == {
        "_stdout": "stdout.boinc.txt",
        "_stderr": "stderr.txt",
        "work/run/result.json": "run/result.json",
        "work/stdout.txt": "stdout.txt",
    }
    assert unpacked(folder_of(tmp_path, b"0\n"), "a/b", "c") == {"a/b": "a/b", "c": "c"}


def test_a_member_called_as_a_stream_does_not_replace_it(tmp_path):
    folder = folder_of(tmp_path, b"0\n")
    places(folder)
    assert unpacked(folder, "stderr.txt", "d/stderr.txt") == {
        "stderr.txt": "stderr.program.txt",
        "d/stderr.txt": "d/stderr.txt",
    }


@pytest.mark.parametrize("name", ["/abs", "nul\0", "", "x" * 300, "a//../b\\..\\c\0"])
def test_a_name_from_a_stranger_that_is_none_is_an_error(tmp_path, name):
    folder = folder_of(tmp_path, b"0\n")
    places(folder)
    with pytest.raises(OutputError, match="has no valid name for a file"):
        unpacked(folder, name)
    folder = folder_of(
        tmp_path, b"0\noutputs:\n" + name.encode() + b"\n", template=unknown_template()
    )
    with pytest.raises(OutputError, match="has no valid name for a file"):
        places(folder, "work/0", "work/1")


def test_dots_of_a_stranger_are_no_way_out(tmp_path):
    folder = folder_of(tmp_path, b"0\n")
    places(folder)
    assert unpacked(folder, "../up", "a/../../b", ".hidden") == {
        "../up": "%2E./up",
        "a/../../b": "a/%2E./%2E./b",
        ".hidden": "%2Ehidden",
    }


@given(st.lists(st.text(min_size=1), max_size=5))
def test_members_stay_inside_and_are_never_hidden(tmp_path_factory, names):
    folder = folder_of(tmp_path_factory.getbasetemp(), b"0\n")
    places(folder)
    try:
        found = unpacked(folder, *names)
    except OutputError:
        return
    for name in found.values():
        assert ".." not in name.split("/")
        assert not any(part.startswith(".") for part in name.split("/"))


def test_names_that_another_machine_has_to_look_up_are_those_that_the_script_told(tmp_path):
    template = unknown_template()
    folder = folder_of(tmp_path, b"0\noutputs:\na\nsub/b\n", template=template)
    assert places(folder, "work/0", "work/1", "work/2") == {
        "_stdout": "stdout.txt",
        "_stderr": "stderr.txt",
        "work/0": "a",
        "work/1": "sub/b",
    }
    assert wanted(folder, "work/0").archive == "work/2"
    folder = folder_of(tmp_path, b"0\n", template=template)
    with pytest.raises(OutputError, match="only known on the machine that submitted it"):
        places(folder, "work/0")


@pytest.mark.parametrize(
    ("ending", "failure"),
    [
        (b"0\n", "the program ended with status 0, but did not make 'a', 'd'"),
        (b"3\n", "exit status 3"),
        (b"137\n", "signal 9 (SIGKILL)"),
        (b"no-tar\n", "the image has no tar"),
        (b"\x80nonsense", "a volunteer's computer did not tell how the program ended"),
    ],
)
def test_the_note_says_why_a_program_failed(tmp_path, ending, failure):
    folder = folder_of(tmp_path, ending, named=("a", "d"))
    places(folder, "work/a", "work/d")
    assert told(folder).failure.startswith(failure)


def test_a_directory_that_is_in_the_archive_is_not_missing(tmp_path):
    folder = folder_of(tmp_path, b"0\n", named=("d", "it's"))
    places(folder, "work/d")
    assert folder.lacks([])
    unpacked(folder, "d/x", "it's")
    assert told(folder).failure == ""


def test_a_program_that_was_not_run_has_only_its_streams(tmp_path):
    folder = folder_of(tmp_path, b"no-program fit\n")
    assert places(folder, "work/a") == {"_stdout": "stdout.txt", "_stderr": "stderr.txt"}
    assert wanted(folder).archive is None
    note = replace(told(folder), result=FetchResult(0, 1.0, 1.0))
    assert JobResult.of("job", {}, tmp_path, note).exit_status is None


def test_jobs_whose_program_ended_badly_are_told_where_they_were_fetched(tmp_path):
    url = "https://boinc.example.org/"
    settings = SimpleNamespace(container_app="docker")
    session = SimpleNamespace(rpc=SimpleNamespace(url=url), project_settings=settings)
    batch = SimpleNamespace(
        directory=tmp_path, manifest=None, app_name="docker", session=session, endings={}
    )
    jobs = [JobInfo(number, f"j{number}", 5, "done") for number in (1, 2, 3)]
    for job, failure in zip(jobs[:2], ("", "no program"), strict=True):
        (tmp_path / job.name).mkdir()
        status = None if failure else 3
        note = FetchRecord(url, job.id, 5, {}, None, exit_status=status, failure=failure)
        write_note(tmp_path / job.name, note, job.name)
    assert [*failed_programs(batch, jobs)] == ["j2"]


def test_a_machine_that_did_not_submit_a_program_knows_its_folder_too(site, tmp_path):
    made = program_batch(site.project.session, ["true"], image="python:3", outputs=["a", "b/c"])
    batch = site.project.submit(made.app, made.jobs, **made.options)

    def folder(batch, **more):
        [of] = batch
        job = FinishedJob(of.name, of.id, 0)
        under_way = BatchFetch(batch, [job], progress=None)
        return under_way.folder(tmp_path / of.name, job, stderr=True, again=False, **more)

    here, there = folder(batch), folder(site.open(home="other").batch(batch.id))
    assert here.is_program
    assert here.named == ("a", "b/c")
    assert {"work/a", "work/b/c"} <= {file.open_name for file in here.own_template.files}
    assert there.is_program
    assert there.named is None
    assert there.own_template is unknown_template()
    assert folder(batch, streams_only=True).named == ()
    assert not folder(site.submit(1, name="uppercase")).is_program
    other = site.batch(1)
    assert not folder(other).is_program
    assert folder(other).own_template is None
