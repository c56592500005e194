"""Jobs that bring their own program, which volunteers run in containers.

The volunteers are outside of HTCondor's chroot, and use the engine of these tests.
"""

import shutil
import sqlite3
from contextlib import closing

import pytest

from tests.containers_engine import IMAGE
from tests.helpers import wait_for
from tests.real_htcondor.node import CONTAINERS
from tests.real_htcondor.pool import HELD, IDLE, ROOT, RUNNING, Cluster
from tests.real_htcondor.submit import environment, words

pytestmark = [pytest.mark.containers, pytest.mark.timeout(300)]

#: Of each kind of job.
MANY = 50
SAMPLES = ROOT / "conf" / "submit"

ARGUMENTS = (
    "two words",
    "it's",
    'a "quote"',
    "$HOME",
    "$(id)",
    "`id`",
    "a;b|c&d>e<f",
    "*",
    "~",
    "back\\slash\\n",
    "",
    "日本 ü",
    "#no comment",
    "!",
    "{a,b}",
    "-n",
    "%s",
)
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "HARD": 'it\'s "so" $HOME `id` \\ * ; 日本',
    "EMPTY": "",
}
#: Writes down what it got, and makes a directory.
FIT = """\
#!/bin/sh
printf '<%s>\\n' "$@" >result.json
printf '%s\\n' "$OMP_NUM_THREADS" "$HARD" "${EMPTY-unset}" >>result.json
cat data.csv m deep/n >>result.json
mkdir -p plots/deep
cp result.json 'plots/a plot'
echo nested >plots/deep/n
echo said
echo complained >&2
"""
FILES = {"fit.py": FIT, "data.csv": "1,2\n", "model/m": "weights\n", "model/deep/n": "more\n"}


def routed(*lines, queue="queue"):
    """Return a job of the container universe that the Job Router is to send."""
    return _job("universe = container", "+WantBoinc = true", *lines, queue)


def grid(*lines, queue="queue"):
    """Return a job of the grid universe."""
    return _job("universe = grid", "grid_resource = batch boinc", *lines, queue)


def _job(*lines):
    *others, queue = lines
    shared = (
        f"container_image = docker://{IMAGE}",
        f'+BoincProject = "{CONTAINERS}"',
        "log = job.log",
    )
    return "\n".join([*others, *shared, queue, ""])


def test_a_hundred_jobs_with_hard_arguments_and_directories_come_back_as_they_should(
    node, volunteers, engine
):
    lines = (
        "executable = fit.py",
        words([*ARGUMENTS, "$(Process)"]).replace("$(DOLLAR)(Process)", "$(Process)"),
        environment(ENVIRONMENT),
        "transfer_input_files = data.csv, model/",
        "transfer_output_files = result.json, plots",
        'transfer_output_remaps = "result.json = result.$(Process); plots = plots.$(Process)"',
        "request_memory = 200MB",
        "output = out.$(Process)",
        "error = err.$(Process)",
    )
    clusters = [
        node.pool.room("alice", "boxed-grid", FILES).submit(grid(*lines, queue=f"queue {MANY}")),
        node.pool.room("bob", "boxed-routed", FILES).submit(routed(*lines, queue=f"queue {MANY}")),
    ]
    for cluster in clusters:
        jobs = cluster.wait(timeout=240)
        assert {job["ExitCode"] for job in jobs} == {0}
        room = cluster.room
        for number in range(MANY):
            shown = [f"<{word}>" for word in (*ARGUMENTS, str(number))]
            told = "\n".join([*shown, *ENVIRONMENT.values(), "1,2", "weights", "more", ""])
            assert room.read(f"result.{number}") == told
            assert room.read(f"plots.{number}/a plot") == told
            assert room.read(f"plots.{number}/deep/n") == "nested\n"
            assert room.read(f"out.{number}") == "said\n"
            assert room.read(f"err.{number}") == "complained\n"
        events = [event for event in cluster.events("job.log") if event != "027"]  # of the grid
        assert events == ["000", "001", "005"]
    assert engine.containers() == set()


def test_an_exit_status_and_a_signal_reach_the_user_log_and_the_history(node, volunteers):
    lines = ("executable = end", "arguments = \"'$(how)'\"")
    queue = "queue how from (\n  exit 3\n  kill -9 $$\n  kill -15 $$\n)"
    clusters = [
        node.pool.room("alice", f"exits-{make.__name__}", {"end": '#!/bin/sh\neval "$1"\n'}).submit(
            make(*lines, queue=queue)
        )
        for make in (grid, routed)
    ]
    for cluster in clusters:
        cluster.wait(timeout=120)
        ask = ("condor_history", str(cluster.number), "-af", "ProcId")
        shown = cluster.room.ask(*ask, "ExitBySignal", "ExitCode", "ExitSignal")
        ends = dict(line.split(maxsplit=1) for line in shown.splitlines())
        assert ends["0"].split()[:2] == ["false", "3"]
        assert [ends[number].split()[::2] for number in "12"] == [["true", "9"], ["true", "15"]]
        log = cluster.room.read("job.log")
        assert "Normal termination (return value 3)" in log
        assert "Abnormal termination (signal 9)" in log
        assert "Abnormal termination (signal 15)" in log


def test_condor_rm_ends_the_container(node, volunteers, engine):
    clusters = [
        node.pool.room(
            "bob", f"endless-{make.__name__}", {"wait": "#!/bin/sh\nsleep 1000\n"}
        ).submit(make("executable = wait"))
        for make in (grid, routed)
    ]
    wait_for(lambda: len(engine.containers()) == 2, "the jobs' containers", pause=0.5)
    for cluster in clusters:
        cluster.wait_until(lambda job: job["JobStatus"] == RUNNING, "the job runs")
        cluster.room.ask("condor_rm", str(cluster.number))
    wait_for(lambda: not engine.containers(), "no container is left", pause=0.5)
    for cluster in clusters:
        assert cluster.room.files() == {"wait", "job.sub", "job.log"}


def test_what_a_grid_job_requests_reaches_the_project_and_an_image_in_a_file_volunteers(
    node, volunteers, engine
):
    file = node.pool.room("bob", "archive", {"end": "#!/bin/sh\n"})
    shutil.copy(engine.archive(), file.directory / "image.tar")
    file.give()
    boxed = file.submit(
        routed("executable = end").replace(f"docker://{IMAGE}", "oci-archive:image.tar")
    )
    asking = node.pool.room("alice", "asking", {"end": "#!/bin/sh\n"}).submit(
        grid(
            "executable = /bin/true",
            "transfer_executable = false",
            "request_cpus = 2",
            "request_disk = 3GB",
            "request_memory = 300MB",
            "+BoincQuorum = 2",
            "+BoincDelayBound = 54321",
        )
    )
    boxed.wait(timeout=120)
    asking.wait(timeout=120)
    assert file.files() == {"end", "image.tar", "job.sub", "job.log"}
    with closing(sqlite3.connect(f"file:{volunteers}/project.sqlite?mode=ro", uri=True)) as project:
        project.row_factory = sqlite3.Row
        [work] = project.execute("SELECT * FROM workunit WHERE delay_bound = 54321").fetchall()
    sizes = (work["rsc_disk_bound"], work["rsc_memory_bound"], work["min_quorum"])
    assert sizes == (3 * 2**30, 300 * 2**20, 2)
    assert "<avg_ncpus>2" in work["xml_doc"]


def test_a_container_job_that_does_not_ask_for_volunteers_stays_in_the_pool(node, volunteers):
    room = node.pool.room("alice", "ours", FILES)
    text = routed("executable = fit.py", "request_disk = 1GB").replace("+WantBoinc = true\n", "")
    room.write("job.sub", text)
    room.ask("condor_submit", "-dry-run", "job.ad", "job.sub")
    written = dict(line.split("=", 1) for line in room.read("job.ad").splitlines() if "=" in line)
    stays = room.submit_file("job.sub")
    # The Job Router takes a later one.
    goes = room.submit(routed("executable = /bin/true", "transfer_executable = false"))
    goes.wait_until(lambda job: "RoutedToJobId" in job, "the job is routed")
    job = stays.job
    assert (job["JobStatus"], job["JobUniverse"]) == (IDLE, 5)
    assert "RoutedToJobId" not in job
    ad = dict(
        line.split(" = ", 1)
        for line in room.ask("condor_q", "-l", str(stays.number)).splitlines()
        if " = " in line
    )
    assert not [name for name in ad if name.lower().startswith(("remote_", "saved"))]
    for name in ("RequestCpus", "RequestDisk", "RequestMemory", "ContainerImage"):
        assert ad[name] == written[name]
    assert "HasContainer" in ad["Requirements"]
    room.ask("condor_rm", str(stays.number), str(goes.number))


def test_a_token_that_getenv_copies_holds_the_job(node, volunteers):
    room = node.pool.room("bob", "secretive", FILES)
    room.write("job.sub", routed("executable = fit.py", "getenv = true"))
    told = room.ask("env", "API_TOKEN=abc", "condor_submit", "-terse", "job.sub")
    cluster = Cluster(room, int(told.split(".")[0]), 1)
    [job] = cluster.wait(HELD)
    assert 'secrets ("API_TOKEN")' in job["HoldReason"]
    assert "abc" not in job["HoldReason"]
    assert "+BoincAllowEnvironment" in job["HoldReason"]
    room.ask("condor_rm", str(cluster.number))


def test_the_samples_run(node, volunteers):
    clusters = []
    for name in ("container.sub", "container-grid.sub"):
        text = (SAMPLES / name).read_text("utf-8")
        assert "container_image = docker://python:3.12-slim\n" in text
        text = text.replace("docker://python:3.12-slim", f"docker://{IMAGE}")
        text = text.replace("\nqueue", f'\n+BoincProject = "{CONTAINERS}"\nqueue')
        clusters.append(node.pool.room("alice", f"sample-{name}", FILES).submit(text))
    for cluster in clusters:
        cluster.wait(timeout=120)
    brought, named = (cluster.room for cluster in clusters)
    for number in range(2):
        assert brought.read(f"result.{number}.json").startswith(
            f"<--title>\n<two words>\n<--seed>\n<{number}>\n1\n"
        )
        assert brought.read(f"plots.{number}/deep/n") == "nested\n"
        assert named.read(f"lines.{number}").split() == ["1"]
