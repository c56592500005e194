import re
import sys
from datetime import datetime
from pathlib import Path

import pytest

import boinc_gahp
from boinc_gahp import _version
from tests.helpers import ran

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parent.parent
COMMAND = Path(sys.executable).with_name("boinc_gahp")


def test_the_command_tells_the_version():
    done = ran(COMMAND, "--version")
    said = f"boinc_gahp {boinc_gahp.__version__}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


def test_version_changes_and_banner_agree():
    heads = re.findall(r"^(\d\S+) \((.+)\)$", (ROOT / "CHANGES.rst").read_text(), re.MULTILINE)
    release = datetime.strptime(_version.RELEASE_DATE, "%b %d %Y").date()  # noqa: DTZ007
    [(_, date), *_] = released = [head for head in heads if head[1] != "unreleased"]
    assert date == release.isoformat()
    # Between releases it is the next one's.
    assert re.split(r"\.dev0", boinc_gahp.__version__)[0] == heads[0][0]
    assert (".dev0" in boinc_gahp.__version__) == (heads[0] not in released)
    banner, answer = ran(COMMAND, input="VERSION\n").stdout.splitlines()
    assert answer == f"S {banner}"
    assert banner.startswith("$GahpVersion: ")
    assert f" {_version.RELEASE_DATE} " in banner
    assert f"\\ {boinc_gahp.__version__} $" in banner
    # gahp.rst, "Start-up", 2.
    assert len(banner) <= 148


def test_scripts_find_the_oldest_releases_that_are_allowed():
    script = ROOT / "scripts/missing_requirements.py"
    done = ran(sys.executable, script, "--oldest", "local-project", "test")
    assert done.returncode == 0, done.stderr
    setup = (ROOT / "setup.cfg").read_text()
    # What is for developers is as new as may be, and is installed here.
    missing = [line for line in done.stdout.splitlines() if line != "boinc_gahp"]
    assert missing
    for line in missing:
        assert line.count(" == ") == 1
        assert f"    {line.replace('==', '>=')}\n" in setup


@pytest.mark.parametrize("name", ["run", "test"])
def test_scripts_say_which_python_they_want(name, tmp_path):
    copy = tmp_path / "scripts"
    copy.mkdir()
    for each in (name, "environment.sh", "missing_requirements.py"):
        (copy / each).write_bytes((ROOT / "scripts" / each).read_bytes())
    (copy / name).chmod(0o755)
    done = ran(copy / name, environ={"PYTHON": "/bin/false"})
    assert done.returncode == 1
    assert done.stderr == f"{name}: PYTHON is /bin/false; Python 3.10 to 3.14 is needed\n"
