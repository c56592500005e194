"""Jobs made on the server: create_work, stage_file and submit, on the database alone."""

import re
from dataclasses import fields, replace
from itertools import count

import pytest

from boinc_gahp.localproject import directory as layout, new_app
from boinc_gahp.localproject.backend.create_work import NewJob, WorkError, create_work
from boinc_gahp.localproject.backend.file_deleter import delete_pass
from boinc_gahp.localproject.backend.staging import stage_file
from boinc_gahp.localproject.core import Core
from boinc_gahp.localproject.php import Php
from boinc_gahp.localproject.states import BatchState
from boinc_gahp.templates.documents import read_workunit
from boinc_gahp.templates.types import InputFileInfo, InputTemplate
from boinc_gahp.templates.writing import write_input_template
from tests.localproject.visitor import made_batch

#: A template that leaves everything open.
OPEN = "templates/open_in"
OPEN_TEMPLATE = write_input_template(InputTemplate((InputFileInfo("in", copy_file=True),)))
_numbers = count(1)


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """A project that nothing runs, with a file ``in.txt`` staged."""
    directory = tmp_path_factory.mktemp("project")
    layout.make(directory)
    core = Core(directory, Php())
    stage_file(core, b"hello\n", "in.txt")
    (directory / OPEN).write_text(OPEN_TEMPLATE)
    for name, classes in (("sized", 3), ("versioned", 0)):
        new_app.insert(
            directory,
            core.db,
            name,
            command=["{python}"],
            input_template=(core.templates / "uppercase_in").read_text(),
            output_template=(core.templates / "uppercase_out").read_text(),
            n_size_classes=classes,
        )
    yield core
    core.db.close()


def new(**fields):
    """Return a job with a name of its own and the staged file."""
    fields = {"name": f"job{next(_numbers)}", "files": ("in.txt",), **fields}
    return NewJob(**fields)


def row(core, workunit_id):
    return (
        core.db.connection()
        .execute("SELECT * FROM workunit WHERE id = ?", (workunit_id,))
        .fetchone()
    )


def counted(core, table="workunit"):
    (number,) = core.db.connection().execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(number)


def refusal(core, *jobs, app="uppercase", batch_id=0):
    """Return the words with which jobs are refused; none of them may have been made."""
    before = counted(core), counted(core, "assignment")
    with pytest.raises(WorkError) as caught:
        create_work(core, app, jobs, batch_id=batch_id)
    assert (counted(core), counted(core, "assignment")) == before
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


def test_every_parameter_of_a_job_is_kept(core):
    ids = create_work(core, "uppercase", [new(**GIVEN, input_template=OPEN)])
    made = row(core, ids[0])
    assert {name: made[name] for name in GIVEN} == GIVEN
    known = {"name", "command_line", "files", "input_template", "output_template"}
    assert {field.name for field in fields(NewJob)} - known - set(GIVEN) == {
        "target_host",
        "target_user",
    }


def test_what_stands_in_the_template_wins_over_what_is_given(core):
    (workunit_id,) = create_work(core, "uppercase", [new(**GIVEN)])
    template = core.input_template(core.templates / "uppercase_in")
    made = row(core, workunit_id)
    said = {name: getattr(template, name, None) for name in GIVEN}
    assert {name: made[name] for name in GIVEN} == {
        name: GIVEN[name] if value is None else value for name, value in said.items()
    }
    assert (made["delay_bound"], made["priority"]) == (86400.0, 7)


def test_what_a_job_leaves_open_is_as_the_template_says_or_boincs_default(core):
    bare = core.templates / "bare_in"
    bare.write_text("<workunit>\n</workunit>\n")
    ids = create_work(core, "uppercase", [new(), new(files=(), input_template="templates/bare_in")])
    names = (
        "delay_bound",
        "rsc_memory_bound",
        "max_error_results",
        "max_total_results",
        "max_success_results",
    )
    assert [tuple(row(core, each)[name] for name in names) for each in ids] == [
        (86400.0, 5e7, 2, 5, 3),
        (7 * 86400.0, 5e8, 1, 1, 1),
    ]


def test_a_job_may_have_as_many_results_as_are_made_at_first_whatever_its_limits(core):
    few = {"target_nresults": 4, "max_success_results": 3, "input_template": OPEN}
    (workunit_id,) = create_work(core, "uppercase", [new(**few)])
    made = row(core, workunit_id)
    assert (made["max_success_results"], made["max_total_results"]) == (4, 4)


def test_a_job_for_a_host_or_a_user_is_assigned(core):
    with core.db.write() as connection:
        host = connection.execute(
            "INSERT INTO host (create_time, userid, domain_name, p_fpops, m_nbytes, d_free, "
            "n_bwdown) VALUES (0, 1, 'h', 1, 1, 1, 1)"
        ).lastrowid
    first, second = create_work(core, "uppercase", [new(target_host=host), new(target_user=2)])
    assigned = core.db.connection().execute(
        "SELECT workunitid, target_type, target_id FROM assignment ORDER BY id"
    )
    assert [tuple(each) for each in assigned] == [(first, 1, host), (second, 2, 2)]
    assert "there is no host with that id" in refusal(core, new(), new(target_host=99))
    assert "there is no user with that id" in refusal(core, new(target_user=99))


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
        ({"name": "a/../b"}, "cannot be named 'a/../b'"),
        ({"name": "n" * 181}, "at most 180"),
        ({"command_line": "x" * 70_000}, r"it would have 7\d,\d+ bytes"),
        ({"input_template": "templates/nosuch"}, "nosuch cannot be read: No such file"),
        ({"output_template": "templates/nosuch"}, "nosuch cannot be read: No such file"),
        ({"input_template": "../elsewhere"}, "is not below"),
        ({"input_template": "/etc/passwd"}, "'/etc/passwd' is not below"),
        ({"input_template": "templates/uppercase_out"}, "input template"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_a_job_that_cannot_be_made_is_refused_with_what_to_do(core, fields, words):
    fields = {"input_template": OPEN, **fields}
    assert re.search(words, refusal(core, new(**fields)))


def test_one_of_many_that_is_wrong_is_named(core):
    words = refusal(core, new(), new(files=("absent.txt",)), new())
    assert words.startswith("job 2 of 3: the input file 'absent.txt' is not staged")


def test_an_app_with_size_classes_wants_one_for_each_job(core):
    assert "size_class is none: expected 0 to 2" in refusal(core, new(), app="sized")
    assert "size_class is 3: expected 0 to 2" in refusal(core, new(size_class=3), app="sized")
    create_work(core, "sized", [new(size_class=2)])


# Files that the template names.


def _template(core, name, **flags):
    file = InputFileInfo(open_name="in", **flags)
    (core.templates / name).write_text(write_input_template(InputTemplate(files=(file,))))
    return f"templates/{name}"


def test_a_constant_file_must_be_staged_and_stands_in_the_document(core):
    job = new(files=(), input_template=_template(core, "const_in", physical_name="const.dat"))
    assert "'const.dat' is not staged" in refusal(core, job)
    stage_file(core, b"constant", "const.dat")
    (file,) = read_workunit(row(core, *create_work(core, "uppercase", [job]))["xml_doc"]).files
    assert (file.name, file.nbytes) == ("const.dat", 8)
    assert file.urls[0].endswith("/const.dat")


def test_gzip_wants_the_file_staged_with_gzip_and_both_are_deleted(core):
    template = _template(core, "gzip_in", gzip=True)
    stage_file(core, b"z" * 5000, "plain.dat")
    job = new(files=("plain.dat",), input_template=template)
    assert "stage the file again with --gzip" in refusal(core, job)
    stage_file(core, b"z" * 5000, "plain.dat", gzip=True)
    (workunit_id,) = create_work(core, "uppercase", [job])
    packed = core.download.find("plain.dat.gz")
    assert packed is not None
    assert f"<gzipped_nbytes>{packed.nbytes}<" in row(core, workunit_id)["xml_doc"]
    with core.db.write() as connection:
        connection.execute("UPDATE workunit SET file_delete_state = 1 WHERE id = ?", (workunit_id,))
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


@pytest.mark.parametrize("name", ["", "..", "a b", "a/b", "n" * 256, "ü"])
def test_a_file_cannot_be_staged_under_a_name_that_no_job_could_use(core, name):
    with pytest.raises(WorkError, match="cannot be staged as"):
        stage_file(core, b"x", name)


# Batches.


def _batch(core, batch_id):
    return core.db.connection().execute("SELECT * FROM batch WHERE id = ?", (batch_id,)).fetchone()


def test_jobs_can_be_added_to_a_batch_that_is_neither_aborted_nor_retired(core):
    batch_id = made_batch(core, "grows", [new(), new()])
    batch = _batch(core, batch_id)
    assert (batch["njobs"], batch["state"]) == (2, BatchState.IN_PROGRESS)
    with core.db.write() as connection:
        connection.execute("UPDATE batch SET state = ?", (BatchState.COMPLETE,))
    create_work(core, "uppercase", [new()], batch_id=batch_id)
    batch = _batch(core, batch_id)
    assert (batch["njobs"], batch["state"]) == (3, BatchState.IN_PROGRESS)
    assert "is not for app 'multi'" in refusal(
        core, new(files=("in.txt", "in.txt")), app="multi", batch_id=batch_id
    )
    with core.db.write() as connection:
        connection.execute("UPDATE batch SET state = ?", (BatchState.RETIRED,))
    assert "is retired: use another one" in refusal(core, new(), batch_id=batch_id)
    assert "there is no batch 999" in refusal(core, new(), batch_id=999)


def test_a_template_can_name_the_batch_and_wins(core):
    mine, other = (made_batch(core, name, [new()]) for name in ("mine", "other"))
    template = core.templates / "batch_in"
    text = (core.templates / "uppercase_in").read_text()
    template.write_text(text.replace("</workunit>", f"    <batch>{mine}</batch>\n</workunit>"))
    job = new(input_template="templates/batch_in")
    (in_mine,) = create_work(core, "uppercase", [job])
    (in_other,) = create_work(core, "uppercase", [replace(job, name="x")], batch_id=other)
    assert (row(core, in_mine)["batch"], row(core, in_other)["batch"]) == (mine, mine)
    jobs = core.db.connection().execute("SELECT njobs FROM batch WHERE id IN (?, ?)", (mine, other))
    assert [each["njobs"] for each in jobs] == [3, 1]
    template.write_text(template.read_text().replace(f"<batch>{mine}<", "<batch>999<"))
    assert refusal(core, replace(job, name="y")) == "there is no batch 999"
