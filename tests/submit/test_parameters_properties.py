"""Whatever a template says and a job asks for: what create_work would store is what was asked."""

from hypothesis import given, settings, strategies as st

from boinc_gahp.submit._parameters import ELEMENTS, RequestedSizes
from boinc_gahp.submit.types import Job, Parameters, SubmitRequest
from boinc_gahp.templates.reading import read_input_template
from boinc_gahp.templates.types import DEFAULTS, InputFileInfo, InputTemplate
from boinc_gahp.templates.writing import write_input_template

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
