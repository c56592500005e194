"""Times that are sent go by the project's clock, on every road; a submit node's may be wrong."""

import time
from email.utils import formatdate

import pytest

from tests.htcondor.desk import desk_of
from tests.htcondor.helpers import expire_times

HOUR, DAY = 3600.0, 86400.0


def other_clock(ahead):
    """Have the project's clock be ``ahead`` seconds ahead of this machine's, as its replies say."""

    def run(exchange):
        reply = exchange.forward()
        date = formatdate(time.time() + ahead, usegmt=True)
        reply.headers = [(k, v) for k, v in reply.headers if k.lower() != "date"]
        reply.headers.append(("Date", date))
        exchange.send(reply)
        return True

    return run


def delete_times(site):
    rows = site.rows("SELECT delete_time FROM job_file ORDER BY id DESC LIMIT 1")
    return [float(value) for (value,) in rows]


@pytest.mark.parametrize("ahead", [HOUR, -HOUR, DAY, -DAY, 30.0])
def test_leases_and_files_are_kept_for_as_long_as_they_should_whatever_the_clocks_say(site, ahead):
    site.local.pause_volunteers()
    site.proxy.fail("*", other_clock(ahead), times=None)
    seen = ahead if abs(ahead) > 60 else 0.0
    with desk_of(site) as desk:
        desk.accept(1)
        desk.run()
        settings = desk.context.settings
    now = time.time()
    assert expire_times(site) == pytest.approx([now + seen + settings.htcondor.lease], abs=60)
    assert delete_times(site) == pytest.approx([now + seen + settings.staging.keep], abs=60)
