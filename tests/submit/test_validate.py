"""What is said of a submit beforehand is what the submit itself would say, and nothing is made."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from boinc_gahp.errors import JobRefused
from boinc_gahp.submit.engine import submit
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
from tests.submit.requests import own_input, own_output

TEXT = InlineFile("x")
SHARED = {"in": TEXT}


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


def line(text):
    return f"<command_line>{text}</command_line>"


def bad_jobs(site):
    """Return jobs that are refused: name, what the refusal says, and the job.

    Some share their inputs with one another, and with jobs that are good.
    """
    good = site.file(b"good")
    own = partial(Job, inputs=SHARED)

    def remote(url, md5="0" * 32):
        return Job(inputs={"in": RemoteFile(url, 1, md5)})

    gone = LocalFile(str(site.directory / "gone"))
    other = replace(good, expected=(1, 2))
    return [
        ("absent", "No such file", Job(inputs={"in": gone})),
        ("changed", "changed after the job was submitted", Job(inputs={"in": other})),
        ("quote", 'contains a "', own(('a"b',))),
        ("none", "wants 1 input file", Job()),
        ("many", "wants 1 input file", Job(inputs={"in": TEXT, "more": TEXT})),
        ("na me", "holds a space", own()),
        ("slash/name", "holds a /", own()),
        ("empty", "cannot store an empty inline file", Job(inputs={"in": InlineFile("")})),
        ("control", "U+000C", Job(inputs={"in": InlineFile("a\x0cb")})),
        ("physical", "its name holds a space", Job(inputs={"in": StagedFile("a b.txt")})),
        ("option", "not the name of a file", Job(inputs={"in": StagedFile("--x")})),
        ("fpops", "rsc_fpops_est is nan", own(fpops=float("nan"))),
        ("long", "at most 4094", own(("x" * 5000,))),
        ("url", "a space", remote("http://a/b c")),
        ("quoted", "a '", remote("http://a/b'")),
        ("entity", "&lt;", remote("http://h/?a=1&lt;b")),
        ("md5", "32 hexa", remote("http://a/b", "x")),
        ("emptyarg", "is empty", own(("",))),
        ("two", "own input template", own(input_template=own_input("in", "b"))),
        ("xml", "'xml'", own(input_template="<a")),
        ("name", "<open_name> in&", own(input_template=own_input("in&amp;"))),
        ("sql", "which holds a '", own(input_template=own_input("in", more=line("it's")))),
        (
            "both",
            "accepts only one of them",
            own(("-x",), input_template=own_input("in", more=line("-y"))),
        ),
        ("out", "'out'", own(output_template="<a/>")),
        ("output", "<open_name> a<b", own(output_template=own_output("a&lt;b"))),
        ("outs", 'uppercase are: "out"', own()),
        ("good_0", "twice in this request", Job(inputs={"in": site.file(b"")})),
    ]


def test_every_job_that_a_submit_would_refuse_is_named_with_the_same_words(site):
    bad = bad_jobs(site)
    path = Path(site.file(b"fine").path)
    there = LocalFile(path, (path.stat().st_size, path.stat().st_mtime_ns))
    good = [("good_0", Job(inputs=SHARED)), ("good_1", Job(inputs={"in": there}))]
    good += [("own", Job(inputs=SHARED, input_template=own_input("in")))]
    outputs = {"good_1": ("x/out",), "outs": ("out", "log")}
    jobs = [good[0], *((name, job) for name, _, job in bad), *good[1:]]
    request = replace(uppercase(*jobs), outputs=outputs)
    with site.context() as context:
        refusals = (validation := BatchValidator(context, request).validation()).refusals
        assert site.proxy.seen == ["get_templates"]
        assert set(refusals) == {name for name, _, _ in bad}
        assert set(validation.inputs) == {"good_1", "own"}  # good_0 stands there twice
        for name, words, job in bad:
            refused = refusals[name]
            assert words in str(refused)
            assert not isinstance(refused, JobRefused) or refused.job_name == name
            with pytest.raises(type(refused)) as raised:
                submit(context, replace(request, jobs=[good[0], (name, job)]))
            assert str(raised.value) == str(refused)
    assert validation.refusal is None
    assert site.proxy.count("create_batch") == 0
    absent, changed = refusals["absent"], refusals["changed"]
    assert (absent.path, absent.errno) == (str(site.directory / "gone"), 2)
    assert (Path(changed.path).read_bytes(), changed.errno) == (b"good", 0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"batch_name": "a'b"}, "could never find the batch again"),
        ({"jobs": ()}, "has no jobs"),
        ({"output_template_filename": "a/b"}, "template file name"),
        ({"parameters": Parameters(memory_bound=-1.0)}, "rsc_memory_bound is -1.0; expected a"),
        ({"parameters": Parameters(disk_bound=float("inf"))}, "rsc_disk_bound is inf; expected"),
        ({"parameters": Parameters(delay_bound=2.0**31)}, "expected a number from 0 to 214"),
    ],
    ids=["name", "no jobs", "template file", "memory", "disk", "delay"],
)
def test_what_stands_against_the_batch_stands_beside_the_jobs(site, change, words):
    request = uppercase(("ok", Job(inputs={"in": TEXT})), ("not ok", Job(inputs={"in": TEXT})))
    with site.context() as context:
        validation = BatchValidator(context, replace(request, **change)).validation()
    assert words in str(validation.refusal)
    assert set(validation.refusals) == (set() if "jobs" in change else {"not ok"})
