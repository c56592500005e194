import shutil
import tempfile
from dataclasses import replace

import pytest

from boinc_gahp.api.manifest import describe
from boinc_gahp.api.project import Project
from boinc_gahp.cli import all_parsers, completion
from boinc_gahp.cli.main import main
from boinc_gahp.submit.types import Job, SubmitRequest
from boinc_gahp.terminal.parsing import Group, arguments_of
from tests.cli.conftest import COMMAND, InProcess
from tests.helpers import ran

pytestmark = pytest.mark.processes

SCRIPTS = {shell: completion.script(shell) for shell in completion.SHELLS}


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_is_printed(shell, capsys):
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_a_script_is_what_its_shell_can_read(shell, tmp_path):
    if shell != "bash" and shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here; scripts/test --install has it")
    path = tmp_path / "script"
    path.write_text(SCRIPTS[shell])
    done = ran(shell, "-n", path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_shell_that_is_missing_is_told(capsys):
    told = "the shell is missing: bash, zsh, fish"
    assert told in InProcess(capsys, "completion").refuses(status=2)


def asked(line):
    """Ask as fish's script does; return the words with their texts."""
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as answer:
        environment = {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_DFS": "\t",
            "_ARGCOMPLETE_IFS": "\n",
            "_ARGCOMPLETE_SHELL": "fish",
            "_ARGCOMPLETE_STDOUT_FILENAME": answer.name,
            "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
            "COMP_LINE": line,
            "COMP_POINT": str(len(line)),
        }
        done = ran(COMMAND, environ=environment)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        return dict(line.split("\t") for line in answer.read().splitlines())


@pytest.mark.parametrize("path", all_parsers(), ids=" ".join)
def test_every_command_action_and_option_is_offered(path):
    parser = all_parsers()[path]
    line = " ".join(["boinc_gahp", *path])
    if isinstance(parser, Group):
        assert asked(f"{line} ") == parser.actions
    options = {
        string
        for argument in arguments_of(parser)
        for string in argument.option_strings
        if string.startswith("--")
    }
    assert set(asked(f"{line} --")) == options


@pytest.fixture
def ids(settings):
    """The ids of batches of several names, as they are kept on the machine that sent them."""
    found = {name: 41 + n for n, name in enumerate(("sweep", "my sweep", "4711", "a\tb"))}
    with Project.from_settings(config=settings) as project:
        for name, number in found.items():
            sent = describe(SubmitRequest(name, "uppercase", [("job", Job())]), {})
            project.session.manifests.write(name, replace(sent, batch_id=number), new=True)
    return found


def test_batches_are_offered_by_names(ids):
    assert asked("boinc_gahp batch show ") == {
        "name:4711": f"batch {ids['4711']} of uppercase",
        "my sweep": f"batch {ids['my sweep']} of uppercase",
        "sweep": f"batch {ids['sweep']} of uppercase",
    }


def test_batches_are_offered_by_id_to_whoever_types_a_number(ids):
    assert asked(f"boinc_gahp batch show {ids['sweep']}") == {str(ids["sweep"]): "sweep"}


@pytest.mark.usefixtures("ids")
def test_apps_are_offered_to_which_jobs_were_submitted():
    assert asked("boinc_gahp batch submit u") == {"uppercase": "app"}


@pytest.mark.parametrize(
    "line",
    [
        "boinc_gahp --config {} batch show --project other ",
        "boinc_gahp --config={} batch show --project=other ",
        "boinc_gahp batch wait --config {} --project other sweep ",
        "boinc_gahp batch fetch --project other --config ~/other.toml ",
    ],
)
def test_batches_are_those_of_the_project_and_the_settings_that_the_line_names(
    line, ids, settings, home
):
    path = home / "other.toml"
    other = settings.read_text().replace("[project]", "[projects.other]")
    path.write_text(f"[project]\nurl = 'http://127.0.0.1:9/'\n{other}")
    shutil.copy(settings.with_name("key"), home)
    assert "my sweep" in asked(line.format(path))
    offered = asked(f"boinc_gahp --config {path} batch show ")
    assert set(offered) == {"my sweep@other", "name:4711@other", "sweep@other"}


def test_projects_are_offered_from_the_settings(settings):
    with settings.open("a") as file:
        file.write("[projects.astro]\nurl = 'https://astro.example.edu/'\n")
    assert asked("boinc_gahp check --project ") == {"astro": "https://astro.example.edu/"}


@pytest.mark.parametrize(
    "text", ["[proj", "[logging]\nlevel = 'off'\n", "[project]\nurl = 'http://127.0.0.1:9/'\n"]
)
def test_trouble_offers_nothing_and_says_nothing(settings, text):
    settings.write_text(text)
    assert asked("boinc_gahp batch show ") == {}
