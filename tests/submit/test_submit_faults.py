"""A fault at any step of a submit, then the same submit again: each job exists once."""

import pytest

from boinc_gahp.errors import GahpError
from boinc_gahp.states import BatchState
from tests import faultproxy

pytestmark = pytest.mark.long

STEPS = [
    "get_templates",
    "query_batch",
    "create_batch",
    "query_files",
    "upload_files",
    "submit_batch",
]
FAULTS = {
    "lost reply": faultproxy.lose_reply(),
    "lost request": faultproxy.lose_request(),
    "500, not done": faultproxy.status(500),
    "500, done": faultproxy.status(500, carried_out=True),
    "503": faultproxy.status(503),
    "HTML page, done": faultproxy.html(carried_out=True),
    "HTML page, not done": faultproxy.html(),
    "empty body, done": faultproxy.body(b"", carried_out=True),
    "PHP warnings": faultproxy.php_warnings(),
    "cut reply": faultproxy.cut(),
    "cut reply with a true length": faultproxy.cut(honest=True),
    "drip": faultproxy.drip(),
    "reset at once": faultproxy.reset(),
    "reset after half of the request": faultproxy.reset(0.5),
}
#: Whether these have been done makes no difference to anybody.
QUESTIONS = {"get_templates", "query_batch", "query_files"}
FAULTS_AT_STEPS = [
    pytest.param(step, fault, id=f"{step}-{name}")
    for step in STEPS
    for name, fault in FAULTS.items()
    if step not in QUESTIONS or name not in {"lost request", "500, not done", "HTML page, not done"}
]


@pytest.mark.parametrize(("step", "fault"), FAULTS_AT_STEPS)
def test_after_a_fault_at_any_step_a_second_submit_ends_with_each_job_once(site, step, fault):
    request = site.batch()
    site.proxy.fail(step, fault)
    try:
        site.submit(request)
    except GahpError as error:
        assert str(error)  # noqa: PT017
    else:
        assert site.workunits(request) == site.names(request)
    site.proxy.heal()
    site.submit(request)
    assert site.workunits(request) == site.names(request)
    assert site.state(request) is BatchState.IN_PROGRESS
