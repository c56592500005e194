"""RPCs in sequences and races: batches, input files, and who may do what."""

import html
import re
from contextlib import suppress

import pytest

from tests.helpers import at_once, wait_for
from tests.inside import batches, staged_files, workunit_names
from tests.localproject.client import Client, error, job, value, with_file
from tests.localproject.stage import Stage


def test_of_racing_submits_at_most_one_succeeds(client):
    batch_id, name = client.begun("b")
    names = [f"raced_{n}" for n in range(300)]

    def submit(_):
        with Client(client.project, client.authenticator) as one:
            return one.submit(batch_id, [job(name_, name) for name_ in names])

    replies = at_once(submit, range(6))
    good = [reply for reply in replies if f"<batch_id>{batch_id}<" in reply]
    assert len(good) == 1
    others = {error(reply).partition(" '")[0] for reply in replies if reply not in good}
    assert others <= {
        "batch not in init state",
        "create_work failed: Database error: Duplicate entry",
    }
    assert workunit_names(client.project, "b") == names


def test_names_compare_as_mariadb_compares_them(client):
    batch_id, name = client.begun("Café_A")
    client.submit(batch_id, [job("Job_É", name)])
    assert client.statuses("cafe_a ") == {"Job_É": "UNSENT"}
    assert value(client.rpc("abort_jobs", job_name="JOB_e"), "success") == "1"


def test_a_template_wins_over_job_params_and_priorities_count(client):
    """``web-rpcs.rst``, "The template wins"; a job's own rsc_fpops_est is for estimates only."""
    templates = client.project.core.templates
    text = (templates / "uppercase_in").read_text()
    (templates / "lacking_in").write_text(re.sub("<rsc_(disk|memory)_bound>.*", "", text))
    batch_id, name = client.begun("b")
    batch = (
        f"<batch><batch_id>{batch_id}</batch_id><app_name>uppercase</app_name>"
        "<app_version_num>777</app_version_num><priority>17</priority><job_params>"
        "<rsc_disk_bound>123456789.000000</rsc_disk_bound><rsc_fpops_est>5e9</rsc_fpops_est>"
        "<rsc_fpops_bound>7e18</rsc_fpops_bound><rsc_memory_bound>0.000000</rsc_memory_bound>"
        "<delay_bound>7200</delay_bound></job_params>"
        "<input_template_filename>lacking_in</input_template_filename>"
        + job("plain", name)
        + job("own", name, more="<priority>23</priority><rsc_fpops_est>2e9</rsc_fpops_est>")
        + "</batch>"
    )
    client.rpc("submit_batch", batch)
    plain, own = client.rows("SELECT * FROM workunit ORDER BY id")
    assert [each["rsc_fpops_est"] for each in (plain, own)] == [1e9, 1e9]
    assert (plain["rsc_fpops_bound"], plain["delay_bound"]) == (1e15, 86400.0)
    assert (plain["priority"], own["priority"]) == (17, 23)
    assert plain["rsc_disk_bound"] == 123456789.0
    assert plain["rsc_memory_bound"] == 5e8
    assert plain["app_version_num"] == 777


def test_a_command_line_beside_the_templates_is_refused(client):
    path = client.project.core.templates / "uppercase_in"
    own = path.read_text().replace("</workunit>", "<command_line>-v</command_line></workunit>")
    batch_id, name = client.begun("b")
    reply = client.submit(batch_id, [job("a", name, command_line="-q", more=own)])
    assert "Can't specify command line -v; already specified as -q" in html.unescape(error(reply))
    assert workunit_names(client.project) == []
    client.submit(batch_id, [job("a", name, more=own)])
    assert (
        "<command_line>\n-v\n</command_line>" in client.rows("SELECT xml_doc FROM workunit")[0][0]
    )


def test_min_mod_time_leaves_out_what_is_not_of_a_later_second(client):
    batch_id, name = client.begun("b")
    client.submit(batch_id, [job("a", name), job("b", name)])
    wait_for(lambda: len(client.rows("SELECT id FROM result")) == 2, "both have results")
    with client.project.core.db.write() as connection:
        connection.execute("UPDATE workunit SET mod_time = 1000.5 WHERE name = 'a'")
    listed = client.rpc("query_batch2", batch_name="b", min_mod_time="1000.5")
    assert "<job_name>a<" not in listed
    assert "<job_name>b<" in listed


def test_a_race_of_uploads_leaves_one_whole_file(client):
    data = b"raced" * 100_000

    def upload(_):
        # All but one may end with a PHP error.
        with Client(client.project) as one, suppress(AssertionError):
            one.upload(data)

    at_once(upload, range(4))
    (name,) = staged_files(client.project)
    assert client.project.core.download.path(name).read_bytes() == data
    assert not list((client.project.directory / "spool").iterdir())


@pytest.mark.parametrize("source", ["/etc/passwd", "../project.sqlite", "link"])
def test_the_mode_local_reads_one_directory_only(client, source):
    local = client.project.directory / "local"
    (local / "link").unlink(missing_ok=True)
    (local / "link").symlink_to("/etc/passwd")
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [with_file("j", "local", source)])
    assert error(reply) == f"Can't get MD5 of file {source}"


@pytest.mark.parametrize("url", ["http://192.0.2.1/x", "file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_the_mode_semilocal_fetches_from_this_machine_only(client, url):
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [with_file("j", "semilocal", url)])
    assert error(reply) == f"couldn't get {url}: only http://127.0.0.1 is allowed here"


def test_an_inline_file_without_contents(client):
    """The real server fails on it, but has made the file, so that the next one goes through."""
    batch_id = client.create_batch("b")
    reply = client.submit(batch_id, [with_file("j0", "inline", "")])
    assert error(reply).startswith("can't write to file")
    reply = client.submit(batch_id, [with_file("j1", "inline", "")])
    assert value(reply, "batch_id") == str(batch_id)


def test_the_batch_of_another_user_is_left_alone(client):
    stage = Stage(client.project)
    stage.job(1, "j", stage.batch(1, "theirs", user="submitter"), "unsent")
    with Client(client.project, client.project.add_user("other")) as other:
        assert error(other.rpc("abort_batch", batch_name="theirs")) == "not owner"
    assert client.statuses("theirs") == {"j": "UNSENT"}
    assert batches(client.project) == [(1, "theirs", 1)]


@pytest.mark.parametrize(
    ("states", "more", "refused"),
    [
        ((), 3, False),
        ((), 4, True),
        (("unsent", "in_progress"), 1, False),
        (("unsent", "in_progress"), 2, True),
        (("done", "failed", "aborted"), 3, False),
        (("done", "unsent"), 3, True),
        (("aborted_in_progress", "unsent"), 2, True),
    ],
)
def test_unfinished_results_and_the_new_jobs_are_counted(client, states, more, refused):
    project, stage = client.project, Stage(client.project)
    limited = project.add_user("limited", max_jobs_in_progress=3)
    stage.file("x.dat")
    stage.batch(1, "before", user="limited")
    stage.job(100, "another's", stage.batch(2, "of another", user="submitter"), "unsent")
    for number, state in enumerate(states, 1):
        stage.job(number, f"before{number}", 1, state)
    with Client(project, limited) as user:
        batch_id = user.create_batch("b")
        reply = user.submit(batch_id, [job(f"j{number}", "x.dat") for number in range(more)])
    if refused:
        assert error(reply) == "limit on jobs in progress exceeded"
        assert workunit_names(project, "b") == []
    else:
        assert value(reply, "batch_id") == str(batch_id)
