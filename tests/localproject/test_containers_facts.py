"""What BOINC's docker_wrapper was seen to do (``containers.rst``), done by the local project."""

import pytest

from boinc_gahp.localproject.directory import make
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import Outcome
from boinc_gahp.templates.types import InputFileInfo, InputTemplate
from boinc_gahp.templates.writing import write_input_template
from tests.containers_engine import IMAGE
from tests.helpers import wait_for
from tests.localproject.in_containers import (
    JOB_TOML,
    ContainerJobs,
    add_container_app,
    files,
    output,
    templates,
)

pytestmark = [pytest.mark.containers, pytest.mark.processes]

SUCCESS, FAILED = Outcome.SUCCESS, Outcome.CLIENT_ERROR


@pytest.fixture(scope="module")
def jobs(engine, tmp_path_factory):
    directory = tmp_path_factory.mktemp("containers") / "project"
    make(directory)
    add_container_app(directory)
    with LocalProject(directory, hosts=2) as project:
        yield ContainerJobs(project)
    assert (engine.containers(), engine.images()) == (set(), {f"{IMAGE}:latest"})


def toml(text):
    return JOB_TOML + text.encode()


def test_a_job_runs_its_own_program_and_nothing_of_it_is_left(jobs, engine):
    done = jobs.run(files("cat in.txt >out", in__txt="data"), [output("out")])
    assert (done.ended, done.outputs) == ((SUCCESS, 0), (b"data",))
    assert engine.containers() == set()
    assert done.stderr.startswith("<core_client_version>8.3.0<")


def test_open_names_may_have_directories(jobs):
    inputs = {**files("cp data/sub/x.txt res/d/o"), "data/sub/x.txt": b"x", "res/d/here": b""}
    assert jobs.run(inputs, [output("res/d/o")]).outputs == (b"x",)


@pytest.mark.parametrize(
    ("written", "arrives"),
    [
        ("--number 7", " --number 7"),
        ("$HOME", f" {__import__('os').environ['HOME']}"),
        ("`echo evaluated`", " evaluated"),
        ("$((6*7))", " 42"),
        ("--verbose --config job.toml --dockerfile Dockerfile --sporadic last", " last"),
    ],
)
def test_words_of_a_command_line_are_expanded_by_the_hosts_shell(jobs, written, arrives):
    done = jobs.run(
        files('printf %s "$ARGS" >out'),
        [output("out")],
        command_line=written,
    )
    assert done.outputs == (arrives.encode(),)


def test_a_job_toml_that_cannot_be_read_is_a_client_error(jobs):
    for text, status in (
        ("workdir =", 1),
        ('mount = ["/a:/b", 3]\n', 1),
        ("workdir = 7\n", 193),
        ("mount = [3]\n", 193),
    ):
        assert jobs.run(files("exit 0", job__toml=text)).ended == (FAILED, status)


def test_without_job_toml_the_image_is_the_jobs_own_and_is_removed_after_it(jobs, engine):
    inputs = files("pwd >out")
    del inputs["job.toml"]
    before = engine.images()
    done = jobs.run(inputs, [output("out")])
    assert (done.outputs, engine.images()) == ((b"/app\n",), before)
    assert "-t boinc__local_" in done.stderr


def test_an_image_name_is_built_once_and_stays_while_the_project_runs(jobs, engine):
    named = files("exit 0", job__toml='image_name = "boinc__test__once"\n')
    said = [jobs.run(named).stderr.count("building image") for _ in range(2)]
    assert said == [1, 0]
    assert "localhost/boinc__test__once:latest" in engine.images()


def test_an_image_name_with_a_tag_is_built_every_time(jobs):
    named = files("exit 0", job__toml='image_name = "boinc__test__tagged:1"\n')
    done = [jobs.run(named) for _ in range(2)]
    assert [each.ended for each in done] == [(SUCCESS, 0)] * 2
    assert [each.stderr.count("building image") for each in done] == [1, 1]


def test_stdout_and_stderr_of_the_container_are_merged_in_the_results_stderr(jobs):
    done = jobs.run(files("echo one; echo two >&2; echo three"))
    log = done.stderr.partition("stderr from container:\n")[2].partition("stderr end\n")[0]
    # The engine reads two pipes.
    assert sorted(log.splitlines()) == ["one", "three", "two"]


def test_the_log_can_be_an_output(jobs):
    done = jobs.run(
        files("echo logged", job__toml=toml('create_args = "--log-opt path=./_log"\n')),
        [output("_log")],
    )
    assert b"stdout F logged\n" in done.outputs[0]


def test_an_exit_status_passes_through_and_the_outputs_are_lost(jobs):
    outputs = [output(name, number) for number, name in enumerate("abcde")]
    done = jobs.run(files("touch a b c d e; exit 3"), outputs)
    assert done.ended == (FAILED, 3)
    assert done.message == "process exited with code 3 (0x3, -253)"
    assert done.row["xml_doc_out"].count("<file_info>") == 1


def test_a_missing_output_is_a_client_error_unless_it_is_optional(jobs):
    done = jobs.run(files("echo b >b"), [output("a", 0, optional=True), output("b", 1)])
    assert (done.ended, done.outputs) == ((SUCCESS, 0), (b"b\n", None))
    done = jobs.run(files("exit 0"), [output("a")])
    assert (done.ended, "output file is missing" in done.message) == ((FAILED, -161), True)


def test_an_input_without_copy_file_is_a_link_that_a_container_cannot_follow(jobs):
    inputs = files("cat in.txt >out", in__txt="data")
    infos = tuple(
        InputFileInfo(open_name=name, copy_file=name != "in.txt", no_delete=True) for name in inputs
    )
    own = templates(list(inputs), [output("out")])
    linked = write_input_template(InputTemplate(infos, rsc_disk_bound=1e8, delay_bound=1e4))
    own = linked + own[own.index("<output_template>") :]
    done = jobs.run(inputs, [output("out")], own=own)
    assert done.outputs[0].startswith(b"<soft_link>")


def test_an_output_without_copy_file_is_not_found(jobs):
    done = jobs.run(files("echo x >out"), [output("out", copy_file=False)])
    assert (done.ended, "output file is missing" in done.message) == ((FAILED, -161), True)


@pytest.mark.parametrize(
    "dockerfile",
    [b"FROM localhost/no-such-image\n", b"FROM\n", b"FROM localhost/bb\nCOPY nosuch /\n"],
)
def test_an_image_that_cannot_be_built_is_a_client_error(jobs, dockerfile):
    text = 'image_name = "boinc__test__broken"\n'
    done = jobs.run(files("exit 0", Dockerfile=dockerfile, job__toml=text))
    assert done.ended == (FAILED, 1)
    # What the engine has said is lost.
    assert done.stderr.endswith(
        "command failed: Error -1\nbuild command failed: -1\nbuild_image() failed: -1\n"
        "\n</stderr_txt>\n]]>\n"
    )


def test_the_bound_of_memory_is_not_enforced(jobs):
    done = jobs.run(files("head -c 20000000 /dev/zero | tail -c 1 | wc -c >out"), [output("out")])
    assert done.outputs == (b"1\n",)
    done = jobs.run(
        files("head -c 20000000 /dev/zero | tail -c 20000000 | wc -c >out"),
        [output("out")],
        rsc_memory_bound=1e6,
    )
    assert (done.ended, done.outputs) == ((SUCCESS, 0), (b"20000000\n",))


def test_a_slot_above_the_bound_of_disk_ends_the_job(jobs, engine):
    done = jobs.run(files("head -c 3000000 /dev/zero >big; sleep 1000"), rsc_disk_bound=2e6)
    assert (done.ended, "Maximum disk usage exceeded" in done.message) == ((FAILED, 196), True)
    assert engine.containers() == set()


def test_a_job_that_takes_too_long_is_ended(jobs, engine):
    done = jobs.run(files("sleep 1000"), rsc_fpops_est=1e8, rsc_fpops_bound=1e9)
    assert done.ended == (FAILED, 197)
    assert engine.containers() == set()


def test_jobs_of_one_image_run_beside_each_other(jobs):
    text = 'image_name = "boinc__test__race"\n'
    names = [
        jobs.submit(files(f"echo {n} >out", job__toml=text), [output("out")]) for n in range(6)
    ]
    done = [jobs.done(name, 1) for name in names]
    assert [each.outputs for each in done] == [(f"{n}\n".encode(),) for n in range(6)]
    assert sum("building image" in each.stderr for each in done) == 1


def test_a_directory_at_an_outputs_name_keeps_the_job_in_progress(jobs):
    name = jobs.submit(files("mkdir out"), [output("out")])
    slots = jobs.project.directory / "slots"
    wait_for(lambda: [*slots.glob(f"*.uploads/{name}_0_*")], "an upload that hangs")
    assert jobs.in_progress(name)


def test_a_container_cannot_hand_out_a_link_as_its_output(jobs):
    done = jobs.run(files("ln -s /etc/passwd out"), [output("out")])
    assert done.ended == (FAILED, -161)
