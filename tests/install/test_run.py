"""``scripts/run`` as somebody runs it who has just got the source."""

import re
import shutil
import sys

from tests.install.conftest import run


def test_it_makes_an_environment_and_shows_the_demo(source, tmp_path):
    # A copy of its own: packages are built in the other one.
    copy = tmp_path / "boinc_gahp"
    shutil.copytree(source, copy)
    environment = {
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path),
        "PYTHON": sys.executable,
    }
    done = run("./scripts/run", cwd=copy, env=environment)
    assert "Making a virtual environment in .venv\n" in done.stdout
    assert "20 of 20 outputs are right" in done.stdout
    assert done.stderr == ""
    # What it says to type next works, in any directory.
    asked = done.stdout.partition("\nNext, ")[2].partition("\n")[2]
    assert "export PATH=" in asked
    typed = run("sh", "-ec", asked, cwd=tmp_path, env=environment)
    assert "A project is in" in typed.stdout
    # What the first run has installed is there for the second.
    again = run("./scripts/run", "--show-conversation", cwd=copy, env=environment)
    assert "Installing" not in again.stdout
    assert re.search(r"BOINC_SUBMIT ", again.stdout)
    assert "20 of 20 outputs are right" in again.stdout
    # As after a pull that brings another command.
    setup = copy / "setup.cfg"
    line = "    boinc_gahp = boinc_gahp.cli.main:main\n"
    more = line.replace("boinc_gahp =", "boinc_gahp_too =")
    setup.write_text(setup.read_text().replace(line, line + more))
    pulled = run("./scripts/run", cwd=copy, env=environment)
    assert "Installing into .venv: boinc_gahp\n" in pulled.stdout
    assert run(copy / ".venv/bin/boinc_gahp_too", "--version").stdout.startswith("boinc_gahp ")
