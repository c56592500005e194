"""Jobs in the grid universe that go well: sent at the beginning, looked at one by one."""

import json

import pytest

from tests.helpers import wait_for
from tests.inside import batches, rows
from tests.real_htcondor.node import command_lines
from tests.real_htcondor.submit import FILES, NUMBERED, grid, words

pytestmark = pytest.mark.timeout(300)

#: What a project takes that has its command lines escaped; the rest is in test_trouble.
ARGUMENTS = (
    *("plain", "two words", "it's", "back\\slash", "--x=$HOME;`ls`", "é", "a,b"),
    *("a<b", "<?pi", "x > y & z", "&lt;&amp;"),
)

UPPERCASE = (*FILES, "error = job.err")

#: Submit file and files of each case.
CASES = {
    "one": (grid("uppercase", *UPPERCASE, "output = job.out"), {"in": "hello\n"}),
    "arguments": (
        grid("speak", words(ARGUMENTS)),
        {},
    ),
    "spaces": (
        grid("spaced", "transfer_input_files = first file, in dir/second file"),
        {"first file": "one\n", "in dir/second file": "two\n"},
    ),
    "remaps": (
        grid(
            "multi",
            "transfer_input_files = in0, in1",
            "transfer_output_files = out0, out1",
            'transfer_output_remaps = "out0 = results/joined; out1 = /home/alice/away/sizes"',
        ),
        {"in0": "a\n", "in1": "bc\n", "results/here already": ""},
    ),
    "streams": (
        grid(
            "speak",
            "transfer_output_files = words.json",
            "output = logs/deep/job.out",
            "error = logs/job.err",
        ),
        {},
    ),
    "optional": (
        grid("optmid", "transfer_input_files = in", "transfer_output_files = out0, out1, out2"),
        {"in": "x\n"},
    ),
    "long": (grid("gated", "arguments = long", "transfer_output_files = out"), {}),
}


@pytest.fixture(scope="module")
def sent(node):
    """The jobs of CASES, by alice."""
    node.pool.room("alice", "away")
    return {
        name: node.pool.room("alice", name, files).submit(text)
        for name, (text, files) in CASES.items()
    }


def test_a_job_goes_to_a_volunteer_and_its_files_come_back(sent, node):
    [job] = sent["one"].wait()
    room = sent["one"].room
    assert (job["ExitCode"], job["ExitBySignal"]) == (0, False)
    assert room.read("out") == "HELLO\n"
    assert "starting uppercase" in room.read("job.err")
    # The app has no output for it, and HTCondor's users expect the file.
    assert room.read("job.out") == ""
    assert room.files() == {"in", "out", "job.sub", "job.log", "job.out", "job.err"}
    assert 0 < job["RemoteUserCpu"] < 60


def test_a_job_that_came_back_has_the_volunteers_time_and_its_files_sizes(sent, node):
    [job] = sent["one"].wait()
    room = sent["one"].room
    came = sum(len(room.read(name)) for name in ("out", "job.out", "job.err"))
    assert (job["BytesSent"], job["BytesRecvd"]) == (came, len("hello\n"))
    # HTCondor counts whole seconds.
    found = rows(node.project, "SELECT elapsed_time FROM result WHERE elapsed_time")
    fraction = pytest.approx(job["RemoteWallClockTime"] % 1, abs=0.002)
    assert any(row[0] % 1 == fraction for row in found)


def test_arguments_arrive_as_separate_words(sent):
    sent["arguments"].wait()
    assert json.loads(sent["arguments"].room.read("words.json")) == list(ARGUMENTS)


def test_file_names_with_spaces_go_and_come(sent):
    sent["spaces"].wait()
    assert sent["spaces"].room.read("joined file") == "one\ntwo\n"


def test_remaps_lead_into_directories_and_to_absolute_paths(sent, pool):
    sent["remaps"].wait()
    room = sent["remaps"].room
    away = pool.root / "home/alice/away/sizes"
    assert room.read("results/joined") == "a\nbc\n"
    assert away.read_text().startswith("sizes 2 3\n")
    assert away.stat().st_uid == room.directory.stat().st_uid
    assert room.files().isdisjoint({"out0", "out1", "out2"})


def test_stdout_and_stderr_are_where_the_submit_file_says(sent):
    sent["streams"].wait()
    room = sent["streams"].room
    assert room.read("logs/deep/job.out") == "said to stdout\n"
    assert "said to stderr" in room.read("logs/job.err")
    assert room.files() == {
        *("job.sub", "job.log", "words.json", "logs/deep/job.out", "logs/job.err"),
    }


def test_a_job_without_an_optional_output_is_complete(sent):
    [job] = sent["optional"].wait()
    assert job["ExitCode"] == 0
    assert sent["optional"].room.files() == {"in", "job.sub", "job.log", "out0", "out2"}


def test_a_job_is_idle_then_running_then_done_as_htcondors_users_know_it(sent, node):
    cluster = sent["long"]
    cluster.wait_until(lambda job: job["JobStatus"] == 2, "the job runs")
    assert f"{cluster.number}.0 R" in node.pool.queue("alice")
    listed = node.pool.ask("alice", "condor_q", "-grid")
    assert f"{cluster.number}.0" in listed
    node.open("long")
    cluster.wait()
    assert cluster.room.read("out") == "long is open\n"
    assert cluster.events("job.log") == ["000", "027", "001", "005"]
    assert "GridResource: batch boinc" in cluster.room.read("job.log")
    assert "return value 0" in cluster.room.read("job.log")


def test_two_users_send_at_once_and_each_has_the_own_account(node):
    clusters = {
        user: node.pool.room(user, "both", {"in": f"{user}\n"}).submit(
            grid("uppercase", *UPPERCASE, "arguments = --both $(Process)", queue="queue 5")
        )
        for user in ("alice", "bob")
    }
    for user, cluster in clusters.items():
        cluster.wait()
        assert cluster.room.read("out") == f"{user.upper()}\n"
        out = cluster.room.directory / "out"
        assert out.stat().st_uid == cluster.room.directory.stat().st_uid
    found = rows(
        node.project,
        "SELECT u.name, count(*) FROM workunit w JOIN batch b ON b.id = w.batch "
        "JOIN user u ON u.id = b.user_id WHERE w.xml_doc LIKE '%--both%' GROUP BY u.name",
    )
    assert [tuple(row) for row in found] == [("alice", 5), ("bob", 5)]


def test_200_jobs_of_one_cluster_go_in_few_batches(node):
    files = {f"in.{number}": f"number {number}\n" for number in range(200)}
    room = node.pool.room("bob", "many", files)
    before = max(node.batches("uppercase"), default=0)
    cluster = room.submit(
        grid(
            "uppercase",
            "arguments = --many $(Process)",
            "transfer_input_files = in.$(Process)",
            *NUMBERED,
            queue="queue 200",
        )
    )
    jobs = cluster.wait(timeout=240)
    batches = node.batches("uppercase", since=before)
    assert {job["ExitCode"] for job in jobs} == {0}
    for number in range(200):
        assert room.read(f"out.{number}") == f"NUMBER {number}\n"
    assert sum(batches.values()) == 200
    assert len(batches) <= 10
    sent = [line for line in command_lines(node.project) if line.startswith("--many ")]
    assert len(sent) == len(set(sent)) == 200


def test_batches_are_retired_when_their_jobs_have_ended(sent, node):
    node.open("long")
    for cluster in sent.values():
        cluster.wait()
    wait_for(
        lambda: all(state.name == "RETIRED" for _, _, state in batches(node.project)),
        "all batches are retired",
        pause=0.5,
    )
