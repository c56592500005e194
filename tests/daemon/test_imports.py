"""What a daemon on pipes has imported, for the banner and for the first request.

A gridmanager spins on its pipe until the banner is there, and runs one daemon for each user: what
is imported is paid for in its time and in memory. The lists are exact on purpose: whoever adds to
them adds to every daemon.
"""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

#: Our modules that a daemon has when it says its banner; the others come with the first request.
OURS_AT_BANNER = """
_version cli cli.main daemon daemon.main errors gahp gahp.banner text
"""
#: What it has when a BOINC_PING was answered by a project: our rooms, and packages of others;
#: tomli is Python's own tomllib from 3.11 on.
ROOMS_AFTER_PING = {
    "_version", "backoff", "cli", "config", "daemon", "errors", "fetch", "files", "gahp",
    "ledger", "logs", "quantities", "rpc", "secret", "states", "submit", "text",
    "threads",
}  # fmt: skip
OTHERS_AFTER_PING = {
    "lxml", "platformdirs", "urllib3",
    *(["tomli"] if sys.version_info < (3, 11) else []),
}  # fmt: skip
#: What urllib3 takes along where it happens to be installed, and what is no package at all.
BESIDE = {"_distutils_hack", "brotli", "cython_runtime", "socks", "sockshandler", "zstandard"}

#: What is for people, documentation and job ads: a request of the BOINC_* family needs none of it.
NEVER = {
    "argcomplete", "argparse", "boinc_gahp.localproject", "boinc_gahp.api", "classad2", "flask",
    "matplotlib", "prompt_toolkit", "rich", "sphinx", "waitress",
}  # fmt: skip
#: Slow parts of the standard library that nothing before the banner needs.
LATE = {
    "asyncio", "concurrent", "dataclasses", "difflib", "email", "http", "inspect", "json",
    "logging", "socket", "sqlite3", "ssl", "subprocess", "tempfile", "threading",
}  # fmt: skip

#: Runs the command, and writes down what is imported before the banner and when it ends.
PROGRAM = """\
import os, sys
from boinc_gahp.cli import main
from boinc_gahp.daemon import main as daemon
report, write, leave = sys.argv[1], daemon._write_banner, os._exit
def note(when):
    with open(report, "a") as file:
        file.write(" ".join([when, *sorted(sys.modules)]) + "\\n")
def banner(fd):
    note("banner")
    write(fd)
def end(status):
    note("end")
    leave(status)
daemon._write_banner = banner
os._exit = end
sys.exit(main.main(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def imported(project, tmp_path_factory):
    """The modules at the banner, and at the end of a conversation with a ping."""
    home = tmp_path_factory.mktemp("home")
    settings = home / "mine.toml"
    settings.write_text(
        f"[project]\nurl='{project.url}'\nauthenticator='{project.authenticator}'\n"
    )
    settings.chmod(0o600)
    report = home / "report"
    # Measuring coverage imports a lot itself.
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("COV", "XDG"))}
    with subprocess.Popen(
        [sys.executable, "-I", "-c", PROGRAM, report, "--config", settings],
        env={**environment, "HOME": str(home)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdin.write("ASYNC_MODE_ON\nBOINC_PING 1\n")
        process.stdin.flush()
        lines = [process.stdout.readline() for _ in range(4)]
        assert lines[3] == "R\n"
        rest, _ = process.communicate("RESULTS\nQUIT\n", timeout=60)
        assert rest == "S 1\n1 NULL\nS\n"
    told = [line.split() for line in report.read_text().splitlines()]
    return {words[0]: set(words[1:]) for words in told}


def rooms(modules):
    return {name.partition(".")[0] for name in ours(modules)}


def ours(modules):
    names = (name.partition(".") for name in modules)
    return {rest for package, _, rest in names if package == "boinc_gahp" and rest}


def others(modules):
    """Return the packages that are neither Python's nor ours."""
    tops = {name.partition(".")[0] for name in modules}
    known = sys.stdlib_module_names | {"boinc_gahp", "__main__", "sitecustomize", "usercustomize"}
    return {
        name for name in tops - known - BESIDE if not name.startswith(("_cython", "__editable"))
    }


def test_the_banner_needs_these_modules_and_no_others(imported):
    assert others(imported["banner"]) == set()
    assert ours(imported["banner"]) == set(OURS_AT_BANNER.split())


def test_a_ping_needs_these_packages_and_no_others(imported):
    assert others(imported["end"]) == OTHERS_AFTER_PING
    assert rooms(imported["end"]) == ROOMS_AFTER_PING


def test_what_is_for_people_is_never_imported(imported):
    assert NEVER & imported["end"] == set()
    assert LATE & imported["banner"] == set()


def test_the_package_itself_imports_its_version_alone_and_names_at_their_first_use():
    program = (
        "import sys; before = set(sys.modules); import boinc_gahp; dir(boinc_gahp);"
        "print(*set(sys.modules) - before); boinc_gahp.Project; assert 'urllib3' in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    new = {
        name for name in done.stdout.split() if name.split(".")[0] not in sys.stdlib_module_names
    }
    assert new == {"boinc_gahp", "boinc_gahp._version"}
