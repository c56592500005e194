"""What is said of a submit beforehand is what the submit itself would say, and nothing is made."""

import hashlib
from dataclasses import replace

import pytest

from boinc_gahp.errors import BatchTooLarge, GahpError, JobRefused, ProjectError, StagingError
from boinc_gahp.submit import association
from boinc_gahp.submit.association import absent_names
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.staging import physical_names
from boinc_gahp.submit.types import (
    InlineFile,
    Job,
    LocalFile,
    Parameters,
    RemoteFile,
    StagedFile,
    SubmitRequest,
)
from boinc_gahp.submit.validate import BatchValidator

TEXT = InlineFile("x")


def uppercase(*jobs, name="judged"):
    return SubmitRequest(name, "uppercase", jobs)


def test_a_good_batch_is_reported_as_it_would_go_and_leaves_nothing(site):
    local = site.file(b"1234567")
    there = StagedFile("there.txt")
    job = Job(("-v",), {"in1": local, "in0": there})
    request = SubmitRequest("good", "multi", [("good-0", job), ("good-1", job)])
    with site.context(max_post_bytes=5000) as context:
        validation = BatchValidator(context, request).validation()
    assert validation.refusal is None
    assert validation.refusals == {}
    assert validation.inputs == dict.fromkeys(("good-0", "good-1"), (there, local))
    assert validation.files == {local.path: 7}
    assert validation.staged == {"there.txt"}
    assert validation.max_post_bytes == 5000
    assert 500 < validation.request_bytes < 1500
    assert {rpc for rpc in ("create_batch", "query_files") if site.proxy.count(rpc)} == set()


def own(open_name, command=""):
    """Return an input template of a job's own."""
    line = f"<command_line>{command}</command_line>" if command else ""
    ref = f"<file_ref><open_name>{open_name}</open_name></file_ref>"
    return f"<input_template><file_info/><workunit>{ref}{line}</workunit></input_template>"


def own_output(open_name):
    """Return an output template of a job's own."""
    return (
        "<output_template><file_info><name><OUTFILE_0/></name></file_info><result><file_ref>"
        f"<file_name><OUTFILE_0/></file_name><open_name>{open_name}</open_name>"
        "</file_ref></result></output_template>"
    )


def bad_jobs(site, room):
    return {
        "absent": ("absent", Job(inputs={"in": LocalFile(str(room / "nowhere"))})),
        "quote": ("quote", Job(('"',), {"in": TEXT})),
        "too many": ("too_many", Job(inputs={"in": TEXT, "more": TEXT})),
        "slash/name": ("slash/name", Job(inputs={"in": TEXT})),
        "empty": ("empty", Job(inputs={"in": InlineFile("")})),
        "control": ("control", Job(inputs={"in": InlineFile("a\x0cb")})),
        "physical": ("physical", Job(inputs={"in": StagedFile("a b.txt")})),
        "option": ("option", Job(inputs={"in": StagedFile("--x")})),
        "fpops": ("fpops", Job(inputs={"in": TEXT}, fpops=float("nan"))),
        "long": ("long", Job(("x" * 4100,), {"in": TEXT})),
        "template": ("template", Job(inputs={"in": TEXT}, input_template="<nothing")),
        "emptyarg": ("emptyarg", Job(("",), {"in": TEXT})),
        "name": ("name", Job(inputs={"in": TEXT}, input_template=own("in&amp;"))),
        "sql": ("sql", Job(inputs={"in": TEXT}, input_template=own("in", "it's"))),
        "both": ("both", Job(("-x",), {"in": TEXT}, input_template=own("in", "-y"))),
        "output": ("output", Job(inputs={"in": TEXT}, output_template=own_output("a&lt;b"))),
        "entity": ("entity", Job(inputs={"in": RemoteFile("http://h/?a=1&lt;b", 1, "0" * 32)})),
        "twice": ("good_0", Job(inputs={"in": site.file(b"")})),
    }


def test_every_job_that_a_submit_would_refuse_is_named_with_the_same_words(site, tmp_path):
    good = [(f"good_{n}", Job(inputs={"in": TEXT})) for n in range(2)]
    bad = bad_jobs(site, tmp_path)
    request = uppercase(good[0], *bad.values(), good[1])
    with site.context() as context:
        validation = BatchValidator(context, request).validation()
        assert set(validation.refusals) == {name for name, _ in bad.values()}
        assert set(validation.inputs) == {"good_1"}  # good_0 stands there twice
        for name, job in bad.values():
            alone = uppercase(good[0], (name, job))
            with pytest.raises((GahpError, StagingError)) as raised:
                submit(context, alone)
            assert str(raised.value) == str(validation.refusals[name])
            assert name in str(raised.value) or "nowhere" in str(raised.value)
    assert validation.refusal is None
    assert site.proxy.count("create_batch") == 0


def test_jobs_that_share_their_files_are_still_checked_one_by_one(site):
    shared = {"in": TEXT}
    good = [("good", Job(("-x",), shared)), ("own", Job(inputs=shared, input_template=own("in")))]
    bad = [
        ("other names", Job(inputs=shared, input_template=own("other"))),
        ("fpops", Job(inputs=shared, fpops=-1.0)),
        ("long", Job(("x" * 4100,), shared)),
        ("both", Job(("-x",), shared, input_template=own("in", "-y"))),
        ("output", Job(inputs=shared, output_template=own_output("a&lt;b"))),
    ]
    bad = [(name.replace(" ", "_"), job) for name, job in bad]
    request = replace(uppercase(*good, *bad), by_name=True)
    with site.context() as context:
        validation = BatchValidator(context, request).validation()
        for name, job in bad:
            with pytest.raises(JobRefused) as raised:
                submit(context, replace(request, jobs=[*good, (name, job)]))
            assert str(raised.value) == str(validation.refusals[name])
            assert name in str(raised.value)
    assert validation.inputs == {"good": (TEXT,), "own": (TEXT,)}
    assert set(validation.refusals) == {name for name, _ in bad}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_name": "a'b"}, "could never find the batch again"),
        ({"jobs": ()}, "has no jobs"),
        ({"output_template_filename": "a/b"}, "template file name"),
        ({"parameters": Parameters(disk_bound=float("inf"))}, "rsc_disk_bound is inf"),
    ],
    ids=["name", "no jobs", "template file", "number"],
)
def test_what_stands_against_the_batch_stands_beside_the_jobs(site, change, words):
    request = uppercase(("ok", Job(inputs={"in": TEXT})), ("not ok", Job(inputs={"in": TEXT})))
    with site.context() as context:
        validation = BatchValidator(context, replace(request, **change)).validation()
    assert words in str(validation.refusal)
    assert set(validation.refusals) == (set() if "jobs" in change else {"not ok"})


def test_a_batch_that_is_too_large_is_reported_with_its_size(site):
    jobs = [(f"large-{n}", Job(inputs={"in": InlineFile("x" * 400)})) for n in range(20)]
    with site.context(max_post_bytes=8000) as context:
        validation = BatchValidator(context, uppercase(*jobs)).validation()
        assert isinstance(validation.refusal, BatchTooLarge)
        assert validation.refusal.nbytes == validation.request_bytes > 20 * 400
        with pytest.raises(BatchTooLarge) as raised:
            submit(context, uppercase(*jobs))
    assert str(raised.value) == str(validation.refusal)


def test_which_files_are_absent_is_asked_without_a_trace(site, monkeypatch):
    here = site.file(b"known by its contents")
    other = site.file(b"never sent")
    with site.context() as context:
        submit(context, uppercase(("known-0", Job(inputs={"in": here})), name="known"))
        names = physical_names(context, [here.path, other.path, here.path])
        assert names[here.path] == hashlib.md5(b"known by its contents").hexdigest() + ".txt"
        assert absent_names(context.project, [*names.values(), "x.dat"]) == [
            names[other.path],
            "x.dat",
        ]
        assert absent_names(context.project, []) == []
        with pytest.raises(ProjectError, match="bad filename"):
            absent_names(context.project, ["a/b"])
        # The real number takes a busy machine longer than the time-out of this site.
        monkeypatch.setattr(association, "_NAMES_PER_QUERY", 50)
        many = [f"{n:032x}.dat" for n in range(51)]
        before = site.proxy.count("query_files")
        assert absent_names(context.project, many) == many
        assert site.proxy.count("query_files") == before + 2


def test_an_estimate_checks_as_a_submit_does(site):
    with site.context() as context:
        with pytest.raises(JobRefused, match="wants 1 input file"):
            BatchValidator(context, uppercase(("e-0", Job()))).estimate()
        assert (
            BatchValidator(
                context, uppercase(("e-0", Job(inputs={"in": site.file(b"x")})))
            ).estimate()
            > 0
        )
    assert site.proxy.count("upload_files") == 0
