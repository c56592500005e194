"""Files on their way to the project: no more than are needed, and in nobody's way."""

import pytest

from boinc_gahp.config.settings import StagingSettings
from boinc_gahp.submit.published import usage
from tests import faultproxy
from tests.helpers import served, wait_for
from tests.htcondor.desk import desk_of, only_for
from tests.htcondor.helpers import await_state, await_status, row_of

pytestmark = pytest.mark.usefixtures("sending")


def test_a_file_that_nobody_wants_any_more_is_broken_off(site):
    size = 20_000_000
    arrived = [0]

    with desk_of(site) as desk:
        job_id = desk.accept_over(desk.file(bytes(size)))

        def cancel(exchange):
            exchange.read_body(0.01)
            desk.context.jobs.cancel(job_id)
            for percent in range(2, 101):  # over a slow line
                exchange.read_body(percent / 100)
                arrived.append(len(exchange.body))
                exchange.closing.wait(0.02)
            return False

        site.proxy.fail("upload_files", cancel, times=None)
        desk.run()
    assert site.proxy.count("upload_files") == 1
    assert max(arrived) < size


def test_a_large_input_is_published_until_its_batch_is_retired(site, tmp_path):
    directory = tmp_path / "public"
    directory.mkdir()
    with served(directory) as site.publish_url:
        site.publish_directory = str(directory)
        with site.service() as service:
            job = site.job(text=b"large\n" * 500_000)
            job_id = service.submit(job.ad)
            wait_for(lambda: usage(directory) == (1, 3_000_000), "the file is public")
            site.local.resume_volunteers()
            await_status(service, [job_id], 4)
            assert job.is_right()
            wait_for(lambda: usage(directory) == (0, 0), "the file is gone")


@pytest.mark.long
def test_stagings_that_take_hours_keep_nothing_small_from_going_on(site, jobs):
    site.local.resume_volunteers()
    site.staging = StagingSettings(bytes_per_post=100_000)
    hang = faultproxy.hang()

    def large(exchange):
        return (hang if exchange.length > 100_000 else only_for(None))(exchange)

    site.proxy.fail("upload_files", large, times=None)
    site.reset(poll_shortest=0.1, poll_longest=0.5)
    with site.service() as service:
        stagings = []
        for number in range(5):
            job_id = service.submit(site.job(text=b"%d" % number * 200_000).ad)
            await_state(jobs, job_id, "sending")  # so each goes in a batch of its own
            stagings.append(job_id)
        wait_for(lambda: site.proxy.count("upload_files") >= 4, "four stagings")
        # A small one is sent, runs, and comes home; another one is cancelled and aborted.
        small, other = site.job(), site.job("--sleep 60")
        ids = [service.submit(job.ad) for job in (small, other)]
        await_status(service, ids[:1], 4)
        assert small.is_right()
        await_state(jobs, ids[1], "running")
        service.cancel(ids[1])
        wait_for(lambda: not jobs.pending_aborts(*site.owner), "the abort")
        assert {row_of(jobs, job_id).state for job_id in stagings} == {"sending"}
        hang.release()
        for job_id in stagings:
            service.cancel(job_id)
