import signal

import pytest
import requests

from tests.cli.conftest import InProcess, running


@pytest.mark.processes
def test_init_makes_a_project_and_says_what_to_do_next(run, home):
    done = run("local-project", "init", "p")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"boinc_gahp local-project run {home}/p\n" in done.stdout
    assert f"export BOINC_GAHP_CONFIG={home}/p/boinc_gahp.toml\n" in done.stdout
    assert "boinc_gahp batch submit uppercase" in done.stdout
    assert (home / "p/boinc_gahp.toml").stat().st_mode & 0o077 == 0
    spaced = run("local-project", "init", "my p")
    unspeakable = run("local-project", "init", "é", PYTHONIOENCODING="ascii")
    assert (unspeakable.returncode, unspeakable.stderr) == (0, "")
    assert f"export BOINC_GAHP_CONFIG='{home}/my p/boinc_gahp.toml'\n" in spaced.stdout


@pytest.mark.processes
def test_run_answers_until_ctrl_c_and_its_settings_lead_to_it(run, home):
    with running(home / "p", "--hosts", "1") as (process, first):
        assert " http://127.0.0.1:" in first
        page = process.stdout.readline().split()[-1]
        assert requests.get(page, timeout=60).status_code == 200
        checked = run("--config", str(home / "p/boinc_gahp.toml"), "check", "--app", "uppercase")
        again = run("local-project", "run", "p")
        told = run("local-project", "status", "p", "--json")
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    assert checked.returncode == 0, checked.stdout
    assert '"running": true' in told.stdout
    assert again.returncode == 1
    assert again.stderr.startswith("boinc_gahp: the project in ")
    assert again.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "p", "--port", "70000"], "'70000' was given; a number from 0 to 65535"),
        (["run", "", "--hosts", "1"], "DIR: it is empty"),
        (["run", "p", "--listen", ""], "--listen: it is empty"),
    ],
    ids=["port", "unset-directory", "unset-address"],
)
def test_wrong_arguments_get_status_2(capsys, arguments, words):
    assert words in InProcess(capsys, "local-project").refuses(*arguments, status=2)
