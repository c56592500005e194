"""Jobs of BUDA apps: what is sent for them, byte by byte, and what is refused."""

import shlex
import time
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from boinc_gahp.containers.rules import FPOPS_BOUND
from boinc_gahp.errors import JobRefused
from boinc_gahp.submit.boinc_submit import boinc_submit
from boinc_gahp.submit.buda import buda_request
from boinc_gahp.submit.checks import buda_name, short_name
from boinc_gahp.submit.types import InlineFile, Job, Parameters, StagedFile, SubmitRequest
from boinc_gahp.templates.reading import read_input_template, read_output_template
from tests.inside import batches
from tests.submit.requests import own_input, own_output

OUTPUTS = {"job": ("fit.json", "log")}


def request(job=Job(), app="buda:fit", **more):  # noqa: B008
    return SubmitRequest("batch", app, [("job", job)], **{"outputs": OUTPUTS, **more})


def made(job=Job(), **more):  # noqa: B008
    return buda_request(request(job, **more)).jobs[0][1]


def refused(job=Job(), **more):  # noqa: B008
    with pytest.raises(JobRefused) as raised:
        buda_request(request(job, **more))
    assert "\n" not in str(raised.value)
    return str(raised.value)


# What is sent.


def test_the_templates_have_the_jobs_own_inputs_the_buda_apps_name_and_its_outputs():
    job = Job(("--level", "3"), {"data.csv": StagedFile("a.csv"), "sub/b": StagedFile("b")})
    asked = buda_request(request(job))
    [(_, sent)] = asked.jobs
    assert (asked.app_name, sent.args, sent.inputs) == ("buda", job.args, job.inputs)
    output = (
        "<file_info>\n<name><OUTFILE_{}/></name>\n<max_nbytes>1e+09</max_nbytes>\n"
        "<url><UPLOAD_URL/></url>\n<no_delete/>\n</file_info>\n"
    )
    assert sent.input_template == (
        "<input_template>\n"
        "<file_info>\n<no_delete/>\n</file_info>\n<file_info>\n<no_delete/>\n</file_info>\n"
        "<workunit>\n"
        "<file_ref>\n<open_name>data.csv</open_name>\n<copy_file/>\n</file_ref>\n"
        "<file_ref>\n<open_name>sub/b</open_name>\n<copy_file/>\n</file_ref>\n"
        "<max_error_results>3</max_error_results>\n<max_total_results>10</max_total_results>\n"
        "<max_success_results>6</max_success_results>\n"
        "<buda_app_name>fit</buda_app_name>\n</workunit>\n</input_template>\n"
    )
    assert sent.output_template == (
        f"<output_template>\n{output.format(0)}{output.format(1)}<result>\n"
        "<file_ref>\n<file_name><OUTFILE_0/></file_name>\n<open_name>fit.json</open_name>\n"
        "<copy_file/>\n</file_ref>\n"
        "<file_ref>\n<file_name><OUTFILE_1/></file_name>\n<open_name>log</open_name>\n"
        "<copy_file/>\n</file_ref>\n"
        "</result>\n</output_template>\n"
    )


@pytest.mark.parametrize("app", ["uppercase", "buda", "budafit", "a:b", "BUDA:fit", ""])
def test_a_request_for_another_app_stays_as_it_is(app):
    one = request(Job(("$HOME",)), app)
    assert buda_request(one) is one
    assert buda_name(app) is None


def test_a_job_may_have_no_outputs_but_then_says_so():
    job = made(outputs={"job": ()}, app="buda:other")
    assert read_output_template(job.output_template or "").files == ()
    assert "name them (transfer_output_files in a submit file, --output, Job.outputs)" in refused(
        outputs={}
    )


def test_a_limit_is_two_weeks_unless_the_job_has_one():
    assert buda_request(request()).parameters == Parameters(fpops_bound=FPOPS_BOUND)
    asked = Parameters(fpops_est=1e12, fpops_bound=2e12)
    assert buda_request(request(parameters=asked)).parameters == asked


def test_jobs_with_files_of_the_same_names_share_the_text_of_their_templates():
    jobs = [(f"job{n}", Job((str(n),), {"in": InlineFile(str(n))})) for n in range(3)]
    found = buda_request(
        SubmitRequest("batch", "buda:fit", jobs, outputs=dict.fromkeys(dict(jobs), ("out",)))
    ).jobs
    assert len({id(job.input_template) for _, job in found}) == 1
    assert len({id(job.output_template) for _, job in found}) == 1


def test_a_boinc_submit_cannot_name_outputs_and_so_it_is_refused(site):
    job = ("fit#1.0", Job(("-v",), {"data.csv": site.file(b"1")}))
    with (
        site.context() as context,
        pytest.raises(JobRefused, match=r"jobs of HTCondor 9 \(BOINC_SUBMIT\) cannot name any"),
    ):
        boinc_submit(context, SubmitRequest("refused", "buda:fit", [job]), time.monotonic() + 300)
    assert [name for _, name, _ in batches(site.local)].count("refused") == 0


# Templates of the job's own.


def test_a_jobs_own_input_template_gets_the_name_and_keeps_the_rest():
    own = own_input("in", more="<delay_bound>77</delay_bound><keywords>1</keywords>")
    text = made(Job(input_template=own)).input_template or ""
    assert read_input_template(text) == replace(read_input_template(own), buda_app_name="fit")
    assert "<keywords>1</keywords>" in text
    assert made(Job(input_template=text)).input_template == text


def test_a_jobs_own_input_template_for_another_buda_app_is_refused():
    own = own_input("in", more="<buda_app_name>other</buda_app_name>")
    assert 'its own input template is for "other"' in refused(Job(input_template=own))
    assert "its own input template" in refused(Job(input_template="<x>"))


def test_own_output_templates_and_those_of_the_project_are_left_alone():
    own = own_output("x")
    assert made(Job(output_template=own)).output_template == own
    there = made(outputs={}, output_template_filename="other_out")
    assert there.output_template is None
    assert there.input_template is not None
    both = made(input_template_filename="a", output_template_filename="b")
    assert (both.input_template, both.output_template) == (None, None)


# What is refused.


@pytest.mark.parametrize(
    "name", ["", "a/b", ".", "..", ".a", " a", "a ", "a'b", "ä", "a<b", "a\nb", "n" * 256]
)
def test_a_name_that_no_buda_app_can_have_is_refused(name):
    assert "the internal name of a BUDA app is expected" in refused(app=f"buda:{name}")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("$HOME",), "has a $, which a shell of the volunteer's computer would evaluate"),
        (("a`id`",), "has a `"),
        (('"',), 'has a "'),
        (("\\",), "has a \\"),
        (("two words",), "is empty or has white space"),
        (("",), "is empty or has white space"),
        (("\u00a0",), "is empty or has white space"),
        (("--config", "x"), "--config would be taken by BOINC's docker_wrapper"),
        (("--verbose", "--dockerfile"), "--dockerfile would be taken by BOINC's docker_wrapper"),
        (("--sporadic",), "--sporadic would be taken by BOINC's docker_wrapper"),
        (("x" * 250, "y" * 250), "has 502 bytes of arguments; a BUDA app gets at most 500"),
    ],
)
def test_arguments_that_would_not_arrive_are_refused(args, words):
    assert words in refused(Job(args))


@pytest.mark.parametrize("name", ["", "/a", "../a", "a/", "C:/a", "a\nb"])
def test_an_output_that_is_no_file_of_the_app_is_refused(name):
    assert refused(outputs={"job": (name,)}).startswith("job")


def test_an_input_in_place_of_the_apps_dockerfile_is_refused():
    text = InlineFile("x")
    assert "cannot be called Dockerfile" in refused(Job(inputs={"Dockerfile": text}))
    many = Job(inputs={f"in{n}": text for n in range(61)})
    assert "61 input files" in refused(many)


# Anything.

WORDS = st.lists(st.text(st.characters(codec="utf-8"), max_size=20), max_size=5)


@given(WORDS)
def test_words_that_are_accepted_mean_themselves_in_the_shell_of_a_volunteer(words):
    try:
        made(Job(tuple(words)))
    except JobRefused:
        return
    if "\0" not in "".join(words):
        assert shlex.split(f'" {" ".join(words)}"') == [f" {' '.join(words)}"]
    assert " ".join(words).split() == words


@given(st.text(max_size=30) | st.text("ab_-. ", max_size=8))
def test_the_scheduler_finds_any_name_that_is_accepted(name):
    try:
        job = buda_request(request(app=f"buda:{name}", outputs={"job": ()})).jobs[0][1]
    except JobRefused:
        return
    text = job.input_template or ""
    assert f"<buda_app_name>{name}</buda_app_name>" in text
    assert read_input_template(text).buda_app_name == name
    assert not set(short_name(f"buda:{name}")) & set(": /'\"\\&<>")


@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_names_of_files_are_refused_or_come_back_as_they_are(names):
    job = Job(inputs={name: InlineFile("x") for name in names})
    try:
        job = made(job, outputs={"job": tuple(names)})
    except JobRefused:
        return
    assert [f.open_name for f in read_input_template(job.input_template or "").files] == list(
        dict.fromkeys(names)
    )
    assert [f.open_name for f in read_output_template(job.output_template or "").files] == list(
        dict.fromkeys(names)
    )
