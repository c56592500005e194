"""Sizes that jobs ask for count, whatever their templates say (``web-rpcs.rst``)."""

from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings, strategies as st

from boinc_gahp.errors import BadRequest, BatchTooLarge, JobRefused
from boinc_gahp.submit._parameters import ELEMENTS, RequestedSizes
from boinc_gahp.submit.engine import submit
from boinc_gahp.submit.types import InlineFile, Job, Parameters, SubmitRequest
from boinc_gahp.submit.validate import BatchValidator
from boinc_gahp.templates.reading import read_input_template
from boinc_gahp.templates.types import DEFAULTS, InputFileInfo, InputTemplate
from boinc_gahp.templates.writing import write_input_template
from tests.helpers import most_memory
from tests.submit.requests import own_input, uppercase

COLUMNS = ("rsc_fpops_est", "rsc_fpops_bound", "rsc_memory_bound", "rsc_disk_bound", "delay_bound")
#: What uppercase's template says.
SAID = (1e9, 1e15, 5e7, 1e8, 86400)
FILE = InlineFile("x")
DELAY = "<delay_bound>1234</delay_bound>"


def asking(name, *jobs, **asked):
    """Return a request for jobs that ask for sizes."""
    return uppercase(name, *jobs, parameters=Parameters(**asked))


def stored(site, *names):
    return [tuple(site.row("workunit", name)[column] for column in COLUMNS) for name in names]


@pytest.fixture
def bodies(site):
    """The submit_batch requests that go to the project."""
    seen = []

    def look(exchange):
        reply = exchange.forward()
        seen.append(bytes(exchange.body).decode("utf-8", "replace"))
        exchange.send(reply)
        return True

    site.proxy.fail("submit_batch", look, times=None)
    return seen


def test_what_a_batch_asks_for_is_stored_whatever_the_template_says(site, bodies):
    asked = asdict(Parameters(2e12, 3e15, 4e8, 5e9, 4242))
    job = Job(inputs={"in": FILE})
    site.submit(asking("all", job, replace(job, fpops=7e10), **asked))
    first, second = stored(site, "all-0", "all-1")
    assert first == tuple(asked.values())
    assert second == (7e10, *first[1:])
    assert bodies[0].count("<input_template>") == 2


def test_an_estimate_is_of_what_would_be_stored(site):
    job = Job(inputs={"in": FILE})
    with site.context() as context:
        plain = BatchValidator(context, asking("e", job)).estimate()
        asked = BatchValidator(context, asking("e", job, fpops_est=5e9)).estimate()
        own = own_input("in", more="<rsc_fpops_est>3e9</rsc_fpops_est>")
        by_template = BatchValidator(
            context, asking("e", replace(job, input_template=own))
        ).estimate()
    assert [asked, by_template] == pytest.approx([5 * plain, 3 * plain])


def test_sizes_beside_a_template_of_the_projects_are_refused_as_nobody_can_know(site):
    job = Job(inputs={"in": FILE})
    named = replace(asking("named", job), input_template_filename="uppercase_in")
    with site.context() as context:
        for request in (
            replace(named, parameters=Parameters(delay_bound=60)),
            replace(named, jobs=[("named-0", replace(job, fpops=2e9))]),
        ):
            with pytest.raises(JobRefused, match="template uppercase_in, whose own values win"):
                submit(context, request)
            with pytest.raises(JobRefused, match="template uppercase_in, whose own values win"):
                BatchValidator(context, request).estimate()
        submit(context, named)
    assert stored(site, "named-0") == [SAID]


def test_the_templates_that_jobs_take_along_count_in_the_requests_size(site):
    jobs = [Job(inputs={"in": FILE})] * 20
    plain, more = asking("big", *jobs), asking("big", *jobs, delay_bound=60)
    with site.context(max_post_bytes=8000) as context:
        assert BatchValidator(context, plain).validation().refusal is None
        validation = BatchValidator(context, more).validation()
        with pytest.raises(BatchTooLarge, match="input templates") as raised:
            submit(context, more)
        assert BatchValidator(context, more).size() == validation.request_bytes > 8000
        without = BatchValidator(context, plain).size()
    assert str(raised.value) == str(validation.refusal)
    filled = sum(each.nbytes for each in validation.filled.values())
    # Written in the request without the line ends round it.
    assert abs(filled - (validation.request_bytes - without)) < 200
    assert f"{filled} of these bytes are input templates" in str(raised.value)
    assert "whose delay_bound differs from that of app uppercase:" in str(raised.value)


def test_an_own_template_that_is_no_text_is_refused_as_ever(site):
    own = own_input("in", more=f"{DELAY}<note>\udc80</note>")
    job = Job(inputs={"in": FILE}, input_template=own)
    with site.context() as context:
        with pytest.raises(BadRequest, match="not well-formed"):
            submit(context, asking("no-text", job))
        # What is filled in is written anew.
        submit(context, asking("no-text", job, delay_bound=59.5))
    # Seconds are whole, and not fewer than were asked for.
    assert site.row("workunit", "no-text-0")["delay_bound"] == 60


def test_a_request_whose_templates_are_too_many_is_not_written_to_be_measured(site):
    own = own_input("in", more=f"{DELAY}<note>{'n' * 60_000}</note>")
    jobs = [Job(inputs={"in": FILE}, input_template=own)] * 1_000
    request = asking("much", *jobs, delay_bound=60)

    def refused():
        with pytest.raises(BatchTooLarge) as raised:
            site.submit(request, max_post_bytes=500_000)
        assert raised.value.nbytes > 60_000_000

    assert most_memory(refused) < 20_000_000


def test_a_template_that_would_become_too_large_is_refused_before_anything_is_sent(site):
    own = own_input("in", more=f"{DELAY}<note>{'n' * 65_400}</note>")
    job = Job(inputs={"in": FILE}, input_template=own)
    with pytest.raises(JobRefused, match="cannot be written into its inp"):
        site.submit(asking("huge", job, delay_bound=60, memory_bound=1e300))
    assert site.proxy.count("create_batch") == 0


_REAL = st.floats(1.0, 1e20) | st.sampled_from([1e9, 86400.0, DEFAULTS["rsc_fpops_est"]])
_WHOLE = st.integers(1, 2**31 - 1).map(float) | st.just(86400.0)


def _values(*, zero):
    real = _REAL | st.just(0.0) if zero else _REAL
    kinds = {name: _WHOLE if name == "delay_bound" else real for name in ELEMENTS}
    return st.fixed_dictionaries({}, optional=kinds)


@settings(max_examples=150)
@given(
    said=_values(zero=False), asked=_values(zero=True), fpops=st.none() | _REAL, own=st.booleans()
)
def test_what_create_work_would_store_is_what_was_asked_for(said, asked, fpops, own):
    template = InputTemplate((InputFileInfo("in", no_delete=True),), **said)
    text = write_input_template(template)
    parameters = Parameters(**{n.removeprefix("rsc_"): value for n, value in asked.items()})
    job = Job(fpops=fpops, input_template=text if own else None)
    asking = RequestedSizes(SubmitRequest("b", "app", [("j", job)], parameters))
    asking.check()
    filled = asking.filled("j", job, template, text)
    sent = template if filled.template is None else read_input_template(filled.template)
    wanted = dict(asked) if fpops is None else {**asked, "rsc_fpops_est": fpops}
    for name in ELEMENTS:
        # create_work's rule: the template, or else job_params, or else its default.
        value = getattr(sent, name)
        stored = asking.params.get(name, DEFAULTS[name]) if value is None else value
        expected = wanted.get(name) or said.get(name) or DEFAULTS[name]
        assert stored == filled.stored[name] == expected
    # Nothing travels that does not have to.
    otherwise = {n: said.get(n, asking.params.get(n) or DEFAULTS[n]) for n in ELEMENTS}
    differing = [n for n, v in wanted.items() if v and otherwise[n] != v]
    assert set(filled.elements) == set(differing)
    assert (filled.template is None) == (not own and not differing)
    assert sent.files == template.files
