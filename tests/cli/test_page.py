"""``boinc_gahp page``."""

import re
import signal
import subprocess

import pytest
import requests

from boinc_gahp.localproject.project import LocalProject
from tests.cli.conftest import COMMAND

pytestmark = pytest.mark.processes


def test_it_serves_all_projects_of_the_settings_until_it_is_stopped(home):
    with LocalProject(home / "p", hosts=0) as project:
        text = (home / "p" / "boinc_gahp.toml").read_text().replace("[project]", "[projects.lhc]")
        path = home / "two.toml"
        path.write_text(f"{text}\n[projects.away]\nurl = 'http://127.0.0.1:9/'\n")
        path.chmod(0o600)
        command = [COMMAND, "page", "--config", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                address = re.search(r"http://127\.0\.0\.1:\d+/\S+/", process.stdout.readline())[0]
                told = requests.get(address, timeout=60).text
                assert "No batch yet" in told
                assert "away cannot be asked now: the settings name no authenticator" in told
                assert "lhc cannot" not in told
                assert project.authenticator not in told
            finally:
                process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0


def test_a_wrong_project_is_refused_at_once(run, home):
    (home / "x.toml").write_text("[projects.lhc]\nurl = 'http://127.0.0.1:9/'\n")
    done = run("page", "--project", "nope", "--config", "x.toml")
    assert done.returncode == 1
    assert 'the settings have no project "nope"' in done.stderr
    assert "boinc_gahp login URL" in run("page").stderr
