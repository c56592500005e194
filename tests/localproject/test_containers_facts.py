"""What BOINC's docker_wrapper was seen to do (``containers.rst``), done by the local project."""

import pytest

from boinc_gahp.localproject.directory import make
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.states import Outcome
from boinc_gahp.templates.types import InputFileInfo, InputTemplate
from boinc_gahp.templates.writing import write_input_template
from tests.containers_engine import IMAGE
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
    inputs = {**files("cat data/x.txt >res/out"), "data/x.txt": b"data", "res/here": b""}
    done = jobs.run(inputs, [output("res/out")])
    assert (done.ended, done.outputs) == ((SUCCESS, 0), (b"data",))
    assert engine.containers() == set()
    assert done.stderr.startswith("<core_client_version>8.3.0<")


@pytest.mark.parametrize(
    ("written", "arrives"),
    [
        ("$HOME", f" {__import__('os').environ['HOME']}"),
        ("$((6*7))", " 42"),
        ("--verbose --config job.toml --dockerfile Dockerfile --sporadic last", " last"),
    ],
)
def test_words_of_a_command_line_are_expanded_by_the_hosts_shell(jobs, written, arrives):
    inputs = files('printf %s "$ARGS" >out')
    done = jobs.run(inputs, [output("out")], command_line=written)
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


@pytest.mark.parametrize(
    ("name", "built"), [("boinc__test__once", [1, 0]), ("boinc__test__tagged:1", [1, 1])]
)
def test_an_image_name_is_built_once_unless_it_has_a_tag_and_stays(jobs, engine, name, built):
    named = files("exit 0", job__toml=f'image_name = "{name}"\n')
    done = [jobs.run(named) for _ in range(2)]
    assert [each.ended for each in done] == [(SUCCESS, 0)] * 2
    assert [each.stderr.count("building image") for each in done] == built
    if ":" not in name:
        assert f"localhost/{name}:latest" in engine.images()


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
    # One without copy_file is not found.
    for script, wanted in (("exit 0", output("a")), ("echo x >a", output("a", copy_file=False))):
        done = jobs.run(files(script), [wanted])
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


@pytest.mark.parametrize(
    ("script", "bounds", "status"),
    [
        ("head -c 3000000 /dev/zero >big; sleep 1000", {"rsc_disk_bound": 2e6}, 196),
        ("sleep 1000", {"rsc_fpops_est": 1e8, "rsc_fpops_bound": 1e9}, 197),
    ],
    ids=["disk", "time"],
)
def test_a_job_above_a_bound_is_ended(jobs, engine, script, bounds, status):
    done = jobs.run(files(script), **bounds)
    assert done.ended == (FAILED, status)
    assert engine.containers() == set()


def test_jobs_of_one_image_run_beside_each_other(jobs):
    text = 'image_name = "boinc__test__race"\n'
    names = [
        jobs.submit(files(f"echo {n} >out", job__toml=text), [output("out")]) for n in range(6)
    ]
    done = [jobs.done(name, 1) for name in names]
    assert [each.outputs for each in done] == [(f"{n}\n".encode(),) for n in range(6)]
    assert sum("building image" in each.stderr for each in done) == 1
