"""``boinc_gahp batch retry``, and what the other commands say of retries."""

import pytest

from tests.faultproxy import status as answering
from tests.helpers import wait_for


@pytest.fixture
def failed(batch, here, tag):
    """A batch of two jobs, of which the second was aborted: its id and name."""
    words = ("--input", "in=in.txt", "--count", 2, "--name", tag)
    number = batch.json("submit", "uppercase", *words)["id"]
    batch.prints("abort", number, "--job", f"{tag}_1", "--yes")
    return number, tag


def test_a_dry_run_shows_what_would_be_sent_and_sends_nothing(batch, failed):
    number, name = failed
    assert batch.prints("retry", number, "--dry-run") == (
        f"Batch '{name}-retry1' would send 1 job of batch {number} '{name}' again: {name}_1.\n"
        "Without --dry-run this is sent.\n"
    )
    assert batch.json("retry", name, "--dry-run") == {
        "name": f"{name}-retry1",
        "parent": number,
        "jobs_left": 0,
        "jobs": [f"{name}_1"],
    }
    assert batch("show", f"name:{name}-retry1")[0] == 1


def test_outputs_of_a_retry_come_with_those_of_the_batch(batch, site, here, failed):
    number, name = failed
    out = batch.prints("retry", number)
    first, *_, wait, fetch = out.splitlines()
    again = int(first.split()[1])
    assert first.startswith(
        f"Batch {again} '{name}-retry1': 1 job of batch {number} '{name}' sent again on "
    )
    assert wait == f"  boinc_gahp batch wait {again}"
    assert fetch == f"  boinc_gahp batch fetch {number}"
    assert batch.prints("retry", number) == (
        f"Nothing to send: all jobs of batch {number} '{name}' that failed were sent again.\n"
        f"1 failed job sent again as {again} {name}-retry1: 1 not over. To wait for them: "
        f"boinc_gahp batch wait {again}\n"
    )
    site.work()
    assert batch.prints("fetch", number) == (
        f"2 jobs fetched (110 bytes), 1 of them from retries; in {name}\n"
        f"1 failed job sent again as {again} {name}-retry1: 1 done.\n"
    )
    assert (here / name / f"{name}_1" / "out").read_text() == "HELLO\n"
    shown = batch.json("show", number)
    assert (shown["reasons"], [each["id"] for each in shown["retries"]]) == ([], [again])
    assert batch("retire", number, "--yes")[1] == (
        f"Batch {number} {name} is retired; its retry is not ({again} {name}-retry1): "
        f"boinc_gahp batch retire {again}.\n"
    )
    # Its outputs were fetched with those of its parent.
    batch.prints("retire", again)


def test_a_job_can_be_named_and_must_have_failed(batch, failed):
    number, name = failed
    assert "only jobs that failed are sent again" in batch.refuses(
        "retry", number, "--job", f"{name}_0"
    )
    made = batch.json("retry", number, "--job", f"{name}_1")
    assert (made["parent"], made["batch"]["name"]) == (number, f"{name}-retry1")
    assert batch.json("retry", number)["batch"] is None


def test_another_machine_says_what_to_do(batch, failed, monkeypatch, tmp_path):
    number, _ = failed
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert "retry the batch on the machine that submitted it" in batch.refuses("retry", number)
    assert "Send them again" not in batch("show", number)[1]


def test_a_lost_lease_is_a_reason_to_send_jobs_again(batch, site, failed):
    number, _ = failed
    site.rpc.set_expire_time(1.0, batch_id=number)
    wait_for(lambda: site.rpc.batch(number).state.name != "IN_PROGRESS", "the end of the lease")
    out = batch("show", number)[1]
    assert "its batch was kept no longer, or aborted" in out
    assert f"Send them again: boinc_gahp batch retry {number}\n" in out
    batch.prints("retry", number)


def test_a_retry_that_fails_says_how_to_go_on_and_that_sends_each_job_once(batch, proxy, failed):
    number, name = failed
    proxy.fail("submit_batch", answering(500), times=None)
    err = batch.refuses("retry", number)
    assert err.splitlines()[-1] == f"boinc_gahp: to continue: boinc_gahp batch retry {number}"
    proxy.heal()
    assert f"'{name}-retry1': 1 job of batch" in batch.prints("retry", number)
    assert batch.prints("retry", number).startswith("Nothing to send")
    made = batch.json("show", f"{name}-retry1")
    assert [job["name"] for job in made["jobs"]] == [f"{name}_1-retry1"]


def test_outputs_that_the_project_has_deleted_are_not_passed_over(batch, site, here, tag):
    batch.prints("submit", "uppercase", "--input", "in=in.txt", "--count", 2, "--name", tag)
    site.work()
    for path in site.project.core.directory.glob(f"upload/*/{tag}_1_*"):
        path.unlink()
    status, _, err = batch("fetch", tag)
    assert (status, "has deleted output number 0" in err) == (1, True)
    first, second = batch.prints("retry", tag).splitlines()
    assert first.startswith("1 job of batch ")
    assert first.endswith("deleted their outputs, submit these jobs as a new batch.")
    assert second.startswith("No job of batch ")
