"""Jobs made on the server: create_work, stage_file and submit, on the database alone."""

import re
import shutil
from dataclasses import fields, replace
from itertools import count

import pytest

from boinc_gahp.localproject.backend.cleaning import delete_pass
from boinc_gahp.localproject.backend.create_work import NewJob, WorkError, create_work, stage_file
from boinc_gahp.localproject.states import BatchState, FileDeleteState
from boinc_gahp.templates.documents import read_workunit
from boinc_gahp.templates.types import InputFileInfo, InputTemplate
from boinc_gahp.templates.writing import write_input_template
from tests.localproject.batches import made_batch
from tests.localproject.bench import HOSTS, Bench

#: A template that leaves everything open.
OPEN = "templates/open_in"
OPEN_TEMPLATE = write_input_template(InputTemplate((InputFileInfo("in", copy_file=True),)))
_numbers = count(1)


@pytest.fixture(scope="module")
def bench(empty_project, tmp_path_factory):
    """A project with a file ``in.txt`` staged, which all tests share."""
    bench = Bench(shutil.copytree(empty_project, tmp_path_factory.mktemp("project") / "p"))
    stage_file(bench.core, b"hello\n", "in.txt")
    (bench.directory / OPEN).write_text(OPEN_TEMPLATE)
    yield bench
    bench.close()


@pytest.fixture
def core(bench):
    return bench.core


def new(**fields):
    """Return a job with a name of its own and the staged file."""
    fields = {"name": f"job{next(_numbers)}", "files": ("in.txt",), **fields}
    return NewJob(**fields)


def made(bench, *jobs, app="uppercase", batch_id=0):
    """Make jobs; return their rows."""
    ids = create_work(bench.core, app, jobs, batch_id=batch_id)
    return [bench.rows("SELECT * FROM workunit WHERE id = ?", each)[0] for each in ids]


def refusal(bench, *jobs, app="uppercase", batch_id=0):
    """Return the words with which jobs are refused; none of them may have been made."""
    count = "SELECT (SELECT count(*) FROM workunit), (SELECT count(*) FROM assignment)"
    before = bench.rows(count)
    with pytest.raises(WorkError) as caught:
        create_work(bench.core, app, jobs, batch_id=batch_id)
    assert bench.rows(count) == before
    return str(caught.value)


GIVEN = {
    "priority": 7,
    "rsc_fpops_est": 1.5e10,
    "rsc_fpops_bound": 2e16,
    "rsc_memory_bound": 3e7,
    "rsc_disk_bound": 4e8,
    "rsc_bandwidth_bound": 5e5,
    "delay_bound": 600.0,
    "min_quorum": 2,
    "target_nresults": 3,
    "max_error_results": 1,
    "max_total_results": 9,
    "max_success_results": 8,
    "size_class": 4,
    "app_version_num": 101,
}


def test_every_parameter_of_a_job_is_kept(bench):
    [row] = made(bench, new(**GIVEN, input_template=OPEN))
    assert {name: row[name] for name in GIVEN} == GIVEN
    known = {"name", "command_line", "files", "input_template", "output_template"}
    assert {field.name for field in fields(NewJob)} - known - set(GIVEN) == {
        "target_host",
        "target_user",
    }


def test_what_stands_in_the_template_wins_over_what_is_given(bench):
    [row] = made(bench, new(**GIVEN))
    template = bench.core.input_template(bench.core.templates / "uppercase_in")
    said = {name: getattr(template, name, None) for name in GIVEN}
    assert {name: row[name] for name in GIVEN} == {
        name: GIVEN[name] if value is None else value for name, value in said.items()
    }
    assert (row["delay_bound"], row["priority"]) == (86400.0, 7)


def test_what_a_job_leaves_open_is_as_the_template_says_or_boincs_default(bench):
    (bench.core.templates / "bare_in").write_text("<workunit>\n</workunit>\n")
    rows = made(bench, new(), new(files=(), input_template="templates/bare_in"))
    names = "delay_bound rsc_memory_bound max_error_results max_total_results max_success_results"
    assert [tuple(row[name] for name in names.split()) for row in rows] == [
        (86400.0, 5e7, 2, 5, 3),
        (7 * 86400.0, 5e8, 1, 1, 1),
    ]
    # A job may have as many results as are made at first, whatever its limits.
    [row] = made(bench, new(target_nresults=4, max_success_results=3, input_template=OPEN))
    assert (row["max_success_results"], row["max_total_results"]) == (4, 4)


def test_a_job_for_a_host_or_a_user_is_assigned(bench):
    first, second = made(bench, new(target_host=HOSTS), new(target_user=2))
    assigned = bench.rows("SELECT workunitid, target_type, target_id FROM assignment ORDER BY id")
    assert [*map(tuple, assigned)] == [(first["id"], 1, HOSTS), (second["id"], 2, 2)]
    assert "there is no host with that id" in refusal(bench, new(), new(target_host=99))
    assert "there is no user with that id" in refusal(bench, new(target_user=99))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"rsc_fpops_est": 0.0}, "rsc_fpops_est 0.0 was given: expected more than 0"),
        ({"delay_bound": float("inf")}, "delay_bound inf was given"),
        ({"rsc_memory_bound": -1.0}, "expected 0 or more"),
        ({"delay_bound": 1e300}, r"delay_bound 1e\+300 was given: expected at most 2147483647"),
        ({"min_quorum": 0}, "min_quorum 0 was given: expected 1 or more"),
        ({"min_quorum": 3, "target_nresults": 2}, "target_nresults 2 is less than min_quorum 3"),
        ({"max_success_results": 3}, "max_success_results 3 is more than max_total_results 1"),
        ({"max_error_results": 3}, "max_error_results 3 is more than max_total_results 1"),
        ({"max_error_results": -2}, "max_error_results -2 is too small"),
        ({"files": ()}, "has 0 input files: 1 are expected, for in"),
        ({"files": ("in.txt", "in.txt")}, "has 2 input files: 1 are expected"),
        ({"files": ("absent.txt",)}, "'absent.txt' is not staged.*stage-file"),
        ({"name": "a b"}, "cannot be named 'a b'"),
        ({"name": "n" * 181}, "at most 180"),
        ({"command_line": "x" * 70_000}, r"it would have 7\d,\d+ bytes"),
        ({"input_template": "templates/nosuch"}, "nosuch cannot be read: No such file"),
        ({"output_template": "templates/nosuch"}, "nosuch cannot be read: No such file"),
        ({"input_template": "../elsewhere"}, "is not below"),
        ({"input_template": "templates/uppercase_out"}, "input template"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_job_that_cannot_be_made_is_refused_with_what_to_do(bench, fields, words):
    fields = {"input_template": OPEN, **fields}
    assert re.search(words, refusal(bench, new(**fields)))


# Files that the template names.


def _template(core, name, **flags):
    file = InputFileInfo(open_name="in", **flags)
    (core.templates / name).write_text(write_input_template(InputTemplate(files=(file,))))
    return f"templates/{name}"


def test_a_constant_file_must_be_staged_and_stands_in_the_document(bench, core):
    job = new(files=(), input_template=_template(core, "const_in", physical_name="const.dat"))
    assert "'const.dat' is not staged" in refusal(bench, job)
    stage_file(core, b"constant", "const.dat")
    (file,) = read_workunit(made(bench, job)[0]["xml_doc"]).files
    assert (file.name, file.nbytes) == ("const.dat", 8)
    assert file.urls[0].endswith("/const.dat")


def test_gzip_wants_the_file_staged_with_gzip_and_both_are_deleted(bench, core):
    template = _template(core, "gzip_in", gzip=True)
    stage_file(core, b"z" * 5000, "plain.dat")
    job = new(files=("plain.dat",), input_template=template)
    assert "stage the file again with --gzip" in refusal(bench, job)
    stage_file(core, b"z" * 5000, "plain.dat", gzip=True)
    [row] = made(bench, job)
    packed = core.download.find("plain.dat.gz")
    assert f"<gzipped_nbytes>{packed.nbytes}<" in row["xml_doc"]
    bench.set("workunit", f"id = {row['id']}", file_delete_state=FileDeleteState.READY)
    delete_pass(core)
    assert not core.download.exists("plain.dat")
    assert not core.download.exists("plain.dat.gz")


# Staging.


def test_a_staged_file_never_changes(core, tmp_path):
    source = tmp_path / "s.dat"
    source.write_bytes(b"one")
    assert stage_file(core, source) == "s.dat"
    assert stage_file(core, source) == "s.dat"
    source.write_bytes(b"two")
    with pytest.raises(WorkError, match=r"'s.dat' is staged already, with other contents"):
        stage_file(core, source)
    with pytest.raises(WorkError, match="with other contents"):
        stage_file(core, b"two", "s.dat", gzip=True)
    assert core.download.path("s.dat").read_bytes() == b"one"
    assert core.download.find("s.dat.gz") is None
    # Nor is one taken whose name no job could use.
    for name in ("", "..", "a b", "a/b", "n" * 256, "ü"):
        with pytest.raises(WorkError, match="cannot be staged as"):
            stage_file(core, b"x", name)


# Batches.


def test_jobs_can_be_added_to_a_batch_that_is_neither_aborted_nor_retired(bench):
    def batch(**columns):
        if columns:
            bench.set("batch", f"id = {number}", **columns)
        [row] = bench.rows("SELECT njobs, state FROM batch WHERE id = ?", number)
        return tuple(row)

    number = made_batch(bench.core, "grows", [new(), new()])
    assert batch() == (2, BatchState.IN_PROGRESS)
    batch(state=BatchState.COMPLETE)
    made(bench, new(), batch_id=number)
    assert batch() == (3, BatchState.IN_PROGRESS)
    two = new(files=("in.txt", "in.txt"))
    assert "is not for app 'multi'" in refusal(bench, two, app="multi", batch_id=number)
    batch(state=BatchState.RETIRED)
    assert "is retired: use another one" in refusal(bench, new(), batch_id=number)
    assert "there is no batch 999" in refusal(bench, new(), batch_id=999)


def test_a_template_can_name_the_batch_and_wins(bench, core):
    mine, other = (made_batch(core, name, [new()]) for name in ("mine", "other"))
    template = core.templates / "batch_in"
    text = (core.templates / "uppercase_in").read_text()
    template.write_text(text.replace("</workunit>", f"    <batch>{mine}</batch>\n</workunit>"))
    job = new(input_template="templates/batch_in")
    rows = made(bench, job) + made(bench, replace(job, name="x"), batch_id=other)
    assert [row["batch"] for row in rows] == [mine, mine]
    jobs = bench.rows("SELECT njobs FROM batch WHERE id IN (?, ?)", mine, other)
    assert [each["njobs"] for each in jobs] == [3, 1]
    template.write_text(template.read_text().replace(f"<batch>{mine}<", "<batch>999<"))
    assert refusal(bench, replace(job, name="y")) == "there is no batch 999"
