"""What a real project answers where no recording shows it (``web-rpcs.rst``), and in races."""

import hashlib
import html
import re
from contextlib import suppress

import pytest

from tests.helpers import at_once, wait_for
from tests.inside import fail_workunit, staged_files, workunit_names
from tests.localproject.client import Client, error, job, value, with_file
from tests.localproject.stage import Stage


@pytest.fixture
def begun(client):
    """The id of an empty batch, and the name of a staged file."""
    return client.begun("b")


@pytest.fixture
def stage(client):
    return Stage(client.project)


# Batches


def test_a_name_leads_to_the_oldest_batch_of_any_user(client):
    with Client(client.project, client.project.add_user("other")) as other:
        other.create_batch("b")
    new = client.create_batch("b")
    for rpc in ("query_batch2", "abort_batch"):
        assert error(client.rpc(rpc, batch_name="b")).startswith("not owner")
    assert value(client.rpc("retire_batch", batch_id=new), "success") == "1"


@pytest.mark.parametrize("quote", ["'", '"', "\\"])
def test_a_batch_name_with_a_quote_is_taken_and_then_not_found(client, quote):
    batch_id = client.create_batch(f"a{quote}b")
    assert error(client.rpc("query_batch", batch_name=f"a{quote}b")) == "no such batch"
    reply = client.rpc("query_batch2", batch_name=f"a{quote}b")
    assert error(reply) == f"no batch named a\\{quote}b"
    assert value(client.rpc("query_batch", batch_id=batch_id), "name") == f"a{quote}b"


def test_a_batch_id_of_0_is_none(client):
    assert error(client.rpc("query_batch", batch_id=0)) == "batch not specified"
    assert error(client.rpc("query_batch", batch_name=0)) == "batch not specified"
    # The text counts: this one is not empty for PHP, and there is no such batch.
    assert error(client.rpc("query_batch", batch_id="00")) == "no such batch"
    batch_id = client.create_batch("b")
    assert f"<id>{batch_id}</id>" in client.rpc("query_batch", batch_id=0, batch_name="b")


def test_of_several_elements_the_first_counts(client, begun):
    """As in PHP, wherever they are: ``$r->batch`` is the first one, too."""
    batch_id, file = begun
    given = "<job_params><rsc_disk_bound>7e6</rsc_disk_bound><rsc_disk_bound>8e6</rsc_disk_bound>"
    mode = "<mode>local_staged</mode><mode>no</mode>"
    template = (
        "<input_template><file_info/><workunit><file_ref><open_name>in</open_name></file_ref>"
        "</workunit></input_template>"
    )
    one = (
        f"<job><name>one</name><name>two</name><input_file>{mode}<source>{file}</source>"
        f"</input_file>{template}<input_template/></job>"
    )
    more = f"<app_name>no</app_name>{given}</job_params><job_params/>"
    reply = client.rpc(
        "submit_batch",
        f"<batch><batch_id>{batch_id}</batch_id><app_name>uppercase</app_name>{more}{one}</batch>"
        f"<batch>{one}</batch>",
    )
    assert value(reply, "batch_id") == str(batch_id)
    query = "SELECT name, rsc_disk_bound FROM workunit WHERE batch = ?"
    (row,) = client.project.core.db.connection().execute(query, (batch_id,)).fetchall()
    assert tuple(row) == ("one", 7e6)


def state(client, batch_id):
    return value(client.rpc("query_batch", batch_id=batch_id), "state")


def test_retiring_a_batch_that_is_over_notes_when_that_was_seen(client, begun):
    batch_id, name = begun
    client.submit(batch_id, [job("j", name)])
    fail_workunit(client.project, "j")
    client.rpc("retire_batch", batch_id=batch_id)
    assert state(client, batch_id) == "4"
    reply = client.rpc("query_batch", batch_id=batch_id)
    assert int(value(reply, "completion_time")) > 1_700_000_000


def test_an_abort_of_a_done_job_shows_in_its_details_only(client, stage):
    stage.only("done")
    client.rpc("abort_jobs", job_name="j")
    assert client.statuses("b") == {"j": "DONE"}
    details = client.rpc("query_batch", batch_id=1, get_job_details=1)
    assert (value(details, "error"), value(details, "status")) == ("cancelled", "error")


def test_min_mod_time_leaves_out_what_is_not_of_a_later_second(client, begun):
    batch_id, name = begun
    client.submit(batch_id, [job("a", name), job("b", name)])
    wait_for(lambda: len(client.rows("SELECT id FROM result")) == 2, "both have results")
    with client.project.core.db.write() as connection:
        connection.execute("UPDATE workunit SET mod_time = 1000.5 WHERE name = 'a'")
    listed = client.rpc("query_batch2", batch_name="b", min_mod_time="1000.5")
    assert re.findall("<job_name>(.)<", listed) == ["b"]


# Input files


def test_files_that_a_killed_upload_left_without_their_rows_can_be_sent_again(client):
    client.project.core.download.add_bytes("x.dat", b"x")
    assert "<success/>" in client.put(("x.dat", b"x"), ("y.dat", b"y"))
    assert staged_files(client.project) == ["x.dat", "y.dat"]


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


@pytest.mark.parametrize(
    ("mode", "source", "said"),
    [
        ("local", "/etc/passwd", "Can't get MD5 of file /etc/passwd"),
        ("local", "../project.sqlite", "Can't get MD5 of file ../project.sqlite"),
        ("local", "link", "Can't get MD5 of file link"),
        ("semilocal", "http://192.0.2.1/x", "couldn't get http://192.0.2.1/x: only http://127.0.0"),
        ("semilocal", "file:///etc/passwd", "couldn't get file:///etc/passwd: only http://127.0.0"),
        # The real server fails on it, but has made the file, so that the next one goes through.
        ("inline", "", "can't write to file"),
    ],
)
def test_an_input_file_that_is_not_to_be_had_is_refused(client, mode, source, said):
    link = client.project.directory / "local" / "link"
    link.unlink(missing_ok=True)
    link.symlink_to("/etc/passwd")
    batch_id = client.create_batch("b")
    assert error(client.submit(batch_id, [with_file("j", mode, source)])).startswith(said)
    again = client.submit(batch_id, [with_file("again", mode, source)])
    assert (f"<batch_id>{batch_id}<" in again) == (mode == "inline")


# submit_batch


def test_of_racing_submits_at_most_one_succeeds(client, begun):
    batch_id, name = begun
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


def test_a_template_wins_over_job_params_and_priorities_count(client, begun):
    """``web-rpcs.rst``, "The template wins"; a job's own rsc_fpops_est is for estimates only."""
    templates = client.project.core.templates
    text = (templates / "uppercase_in").read_text()
    (templates / "lacking_in").write_text(re.sub("<rsc_(disk|memory)_bound>.*", "", text))
    batch_id, name = begun
    client.submit(
        batch_id,
        [
            job("a", name),
            job("b", name, more="<priority>23</priority><rsc_fpops_est>2</rsc_fpops_est>"),
        ],
        more="<app_version_num>777</app_version_num><priority>17</priority><job_params>"
        "<rsc_disk_bound>123456789.000000</rsc_disk_bound><rsc_fpops_est>5e9</rsc_fpops_est>"
        "<rsc_memory_bound>0.000000</rsc_memory_bound><delay_bound>7200</delay_bound></job_params>"
        "<input_template_filename>lacking_in</input_template_filename>",
    )
    wanted = "rsc_fpops_est, delay_bound, rsc_disk_bound, rsc_memory_bound, app_version_num"
    rows = client.rows(f"SELECT priority, {wanted} FROM workunit ORDER BY id")
    assert [*map(tuple, rows)] == [
        (priority, 1e9, 86400.0, 123456789.0, 5e8, 777) for priority in (17, 23)
    ]


def test_a_command_line_beside_the_templates_is_refused(client, begun):
    path = client.project.core.templates / "uppercase_in"
    own = path.read_text().replace("</workunit>", "<command_line>-v</command_line></workunit>")
    batch_id, name = begun
    reply = client.submit(batch_id, [job("a", name, command_line="-q", more=own)])
    assert "Can't specify command line -v; already specified as -q" in html.unescape(error(reply))
    assert workunit_names(client.project) == []
    client.submit(batch_id, [job("a", name, more=own)])
    [(document,)] = client.rows("SELECT xml_doc FROM workunit")
    assert "<command_line>\n-v\n</command_line>" in document


_INFO, _REF = "<file_info></file_info>", "<file_ref><copy_file/></file_ref>"


@pytest.mark.parametrize(
    ("template", "files", "said"),
    [
        (None, 1, "create_work failed: Can't read WU template"),
        # The number of files is compared with the app's template all the same.
        (None, 0, "wrong # of input files for job 0: need 1, got 0"),
        (f"{_INFO * 2}<workunit>{_REF * 2}</workunit>", 2,
         "wrong # of input files for job 0: need 1, got 2"),
    ],
    ids=["not there", "not there, without files", "with more files"],
)  # fmt: skip
def test_a_batchs_template_is_for_create_work_and_files_are_counted_by_the_apps(
    client, template, files, said
):
    path = client.project.core.templates / "given_in"
    path.unlink(missing_ok=True)
    if template is not None:
        path.write_text(template)
    names = client.upload(b"x", b"y")[:files]
    batch_id = client.create_batch("b")
    given = "<input_template_filename>given_in</input_template_filename>"
    assert error(client.submit(batch_id, [job("j", *names)], more=given)).startswith(said)
    assert state(client, batch_id) == "0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{_INFO}<workunit></workunit>", "#file refs != #file infos"),
        ("<workunit><file_ref><open_name>a</open_name></file_ref></workunit>",
         "too many <file_ref>s"),
        (f"{_INFO}<workunit><file_ref></file_ref></workunit>",
         "No open name found and copy_file not specified"),
        (_INFO, "process_input_template: bad WU template - no <workunit>"),
    ],
    ids=["no refs", "no infos", "no open name", "no workunit"],
)  # fmt: skip
def test_a_template_without_file_refs_is_for_create_work_to_refuse(client, begun, text, said):
    batch_id, name = begun
    own = f"<input_template>{text}</input_template>"
    assert html.unescape(error(client.submit(batch_id, [job("j", name, more=own)]))) == (
        f"create_work failed: {said}\n"
        "process_input_template(): unexpected XML tag or syntax\ncreate_work() failed: -112\n"
    )
    assert state(client, batch_id) == "0"


@pytest.mark.parametrize(
    ("params", "each", "said"),
    [
        ("", "", "no rsc_fpops_est given"),
        ("<job_params><rsc_fpops_est>0</rsc_fpops_est></job_params>", "", "--flops 0 --app"),
        ("", "<rsc_fpops_est>1e9</rsc_fpops_est>", ""),
        ("<job_params><rsc_fpops_est>1e9</rsc_fpops_est></job_params>", "", ""),
    ],
    ids=["none", "0", "each job's", "job_params"],
)
def test_an_allocation_needs_an_estimate_for_each_job(client, begun, params, each, said):
    batch_id, name = begun
    more = f"<allocation_priority>1</allocation_priority>{params}"
    reply = client.submit(batch_id, [job("j", name, more=each)], more=more)
    assert (said in error(reply)) if said else (f"<batch_id>{batch_id}</batch_id>" in reply)


@pytest.mark.parametrize(
    ("states", "more", "refused"),
    [
        ((), 4, True),
        (("unsent", "in_progress"), 1, False),
        (("unsent", "in_progress"), 2, True),
        (("done", "failed", "aborted"), 3, False),
        (("aborted_in_progress", "unsent"), 2, True),
    ],
)
def test_unfinished_results_and_the_new_jobs_are_counted(client, stage, states, more, refused):
    limited = client.project.add_user("limited", max_jobs_in_progress=3)
    stage.file("x.dat")
    stage.batch(1, "before", user="limited")
    stage.job(100, "another's", stage.batch(2, "of another", user="submitter"), "unsent")
    for number, of_job in enumerate(states, 1):
        stage.job(number, f"before{number}", 1, of_job)
    with Client(client.project, limited) as user:
        batch_id = user.create_batch("b")
        reply = user.submit(batch_id, [job(f"j{number}", "x.dat") for number in range(more)])
    assert ("limit on jobs in progress exceeded" in reply) == refused
    assert len(workunit_names(client.project, "b")) == (0 if refused else more)


# get_output


def test_only_the_owners_signature_opens_an_archive(client, stage):
    stage.only("done", files={0: b"output"})
    job = {"cmd": "workunit_files", "wu_id": 1}
    good = client.signed("1")
    assert client.get(**job, auth_str=good).headers["Content-Type"].startswith("application")
    for wrong in (client.signed("other"), hashlib.md5(b"1").hexdigest(), f"{good} "):
        assert client.get(**job, auth_str=wrong).text.startswith("ERROR: bad auth")


def test_outputs_of_jobs_without_a_batch_are_nobodys(client, stage):
    stage.job(1, "j", 0, "done", files={0: b"output"})
    unsigned = hashlib.md5(b"j_0").hexdigest()
    reply = client.get(cmd="result_file", result_name="j_0", file_num=0, auth_str=unsigned)
    assert reply.text == "ERROR: no batch 0"


def test_a_dot_in_a_jobs_name_empties_the_archive_of_its_outputs(client, stage):
    stage.batch(1, "b", user="submitter")
    for number, name in enumerate(("with.dot", "without"), 1):
        stage.job(number, name, 1, "done")
        packed = client.get(cmd="workunit_files", wu_id=number, auth_str=client.signed(number))
        assert packed.status_code == 200
        assert (packed.content == b"") == ("." in name), name
