"""Batches and jobs by RPC: sequences, races, names, rights; ."""

import html
import re
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.helpers import wait_for
from tests.inside import workunit_names
from tests.localproject.client import Client, error, job, value


def test_of_racing_submits_at_most_one_succeeds(client):
    batch_id, name = client.begun("b")
    names = [f"raced_{n}" for n in range(300)]
    replies = []
    start = threading.Barrier(6)

    def submit(_):
        with Client(client.project, client.authenticator) as one:
            start.wait(60)
            replies.append(one.submit(batch_id, [job(name_, name) for name_ in names]))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(submit, range(6)))
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
