"""A submit node in the chroot, and the projects that its users have accounts on."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from boinc_gahp.localproject import new_app
from boinc_gahp.localproject.core import STOCK
from boinc_gahp.localproject.project import LocalProject
from boinc_gahp.localproject.supplied import input_template, output_template
from tests.helpers import wait_for
from tests.inside import rows, write_templates

USERS = ("alice", "bob")

#: The project with an app for containers, and the app.
CONTAINERS = "containers"
CONTAINER_APP = "docker"

#: Writes its arguments, a line each in JSON, and says something on stdout and stderr.
_SPEAK = """
import json, sys
print("said to stdout")
print("said to stderr", file=sys.stderr)
open("words.json", "w").write(json.dumps(sys.argv[1:]))
"""
#: Waits for the file that its argument names.
_GATED = """
import pathlib, sys, time
while not pathlib.Path("{gates}", sys.argv[1]).exists():
    time.sleep(0.02)
open("out", "w").write(f"{sys.argv[1]} is open\\n")
"""
#: Writes a part of its output, says what is wrong, and fails.
_CRASHY = """
import sys
open("out", "w").write("as far as it came\\n")
print("no convergence after 500 iterations", file=sys.stderr)
sys.exit(11)
"""
#: Joins two files whose names have a space.
_SPACED = """
joined = open("first file").read() + open("second file").read()
open("joined file", "w").write(joined)
"""

_SETTINGS = """
[project]
url = "{main}"
authenticator_file = "~/.config/boinc_gahp/authenticator"
escape_command_lines = true

# The same one, with an authenticator that is nobody's.
[projects.locked]
url = "{main}"
authenticator_file = "~/.config/boinc_gahp/authenticator.locked"

{others}
[timeouts]
connect = 3
read = 10
retry = 5

[htcondor]
send_after = 1.0
longest_wait = 5.0
poll_shortest = 1.0
poll_longest = 4.0
"""
#: Bob does without escapes.
_OF_BOB = """
[project]
escape_command_lines = false
"""
_OTHER = """
[projects.{name}]
url = "http://127.0.0.1:{port}/test/"
authenticator_file = "~/.config/boinc_gahp/authenticator.{name}"
"""
_CONTAINER_APP = f'container_app = "{CONTAINER_APP}"\n'


def free_port():
    """Return a port on which nothing listens."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def add_apps(project, gates):
    """Give a project the apps of these tests, beside the supplied ones."""
    for name, script, inputs, outputs in (
        ("speak", _SPEAK, (), ("words.json", "stdout.txt")),
        ("gated", _GATED.replace("{gates}", str(gates)), (), ("out",)),
        ("crashy", _CRASHY, (), ("out",)),
        ("spaced", _SPACED, ("first file", "second file"), ("joined file",)),
    ):
        project.add_app(name, ["{python}", "-I", "-S", "-c", script], outputs="out")
        write_templates(project, name, input_template(*inputs), output_template(*outputs))


@dataclass(frozen=True)
class Other:
    """A project of which a test has its own: named in the settings, down until it is started.

    Attributes:
        gates: the directory that its app ``gated`` looks at.
    """

    name: str
    port: int
    directory: Path
    gates: Path

    @contextmanager
    def running(self, hosts=2):
        """Run it in this process."""
        with LocalProject(self.directory, port=self.port, hosts=hosts, php=STOCK) as project:
            yield project

    def start(self):
        """Run it with four volunteers as a process of its own; return that once it answers."""
        command = Path(sys.executable).with_name("boinc_gahp")
        options = ["--port", str(self.port), "--hosts", "4", "--stock-php"]
        process = subprocess.Popen(
            [command, "local-project", "run", self.directory, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(
            lambda: self._answers() or process.poll() is not None, "the project answers", pause=0.1
        )
        assert process.poll() is None, f"it ended with {process.returncode}"
        return process

    def _answers(self):
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@dataclass(frozen=True)
class Node:
    """The pool with boinc_gahp set up on it, and a project in this process.

    Attributes:
        gates: what the project's app ``gated`` looks at.
        others: further projects, by name.
    """

    pool: object
    project: LocalProject
    gates: Path
    others: dict[str, Other]

    def open(self, gate):
        """Let the jobs go on that wait for ``gate``."""
        (self.gates / gate).touch()

    def batches(self, app, since=0):
        """Return how many jobs each batch of an app has, by its id, of those after ``since``."""
        found = rows(
            self.project,
            "SELECT b.id, count(w.id) FROM batch b JOIN app a ON a.id = b.app_id "
            "LEFT JOIN workunit w ON w.batch = b.id "
            "WHERE a.name = ? AND b.id > ? GROUP BY b.id",
            *(app, since),
        )
        return {row[0]: row[1] for row in found}

    def aborted(self, command_line):
        """Return how many workunits with a command line are failed."""
        query = "SELECT count(*) FROM workunit WHERE error_mask != 0 AND xml_doc LIKE ?"
        return rows(self.project, query, f"%<command_line>%{command_line}%</command_line>%")[0][0]


def command_lines(project):
    """Return the command lines of all workunits that a project has or had."""
    found = []
    for row in rows(project, "SELECT xml_doc FROM workunit ORDER BY id"):
        match = re.search(r"<command_line>\s*(.*?)\s*</command_line>", row["xml_doc"], re.DOTALL)
        found.append(match[1] if match else "")
    return found


def set_up(pool, project, directory, names):
    """Make the settings, accounts and apps; no project but ``project`` runs yet."""
    gates = directory / "gates"
    gates.mkdir()
    add_apps(project, gates)
    secrets = {"locked": dict.fromkeys(USERS, "0" * 32)}
    secrets[""] = {user: project.add_user(user) for user in USERS}
    others = {}
    for name in names:
        other = Other(name, free_port(), directory / name, directory / f"{name}.gates")
        other.gates.mkdir()
        with other.running(hosts=0) as stopped:
            add_apps(stopped, other.gates)
            if name == CONTAINERS:
                new_app.add(stopped.core, new_app.NewApp(CONTAINER_APP, container=True))
            secrets[name] = {user: stopped.add_user(user) for user in USERS}
        others[name] = other
    settings = pool.root / "etc/boinc_gahp/boinc_gahp.toml"
    sections = "".join(
        _OTHER.format(name=name, port=each.port) + _CONTAINER_APP * (name == CONTAINERS)
        for name, each in others.items()
    )
    settings.write_text(_SETTINGS.format(main=project.url, others=sections), "utf-8")
    for name, of_user in secrets.items():
        for user, secret in of_user.items():
            write_private(pool, user, f"authenticator.{name}".rstrip("."), f"{secret}\n")
    write_private(pool, "bob", "boinc_gahp.toml", _OF_BOB)
    return Node(pool, project, gates, others)


def write_private(pool, user, name, text):
    """Write a file into a user's settings that nobody else can read."""
    home = pool.root / "home" / user
    file = home / ".config/boinc_gahp" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(0o600)
    file.write_text(text, "ascii")
    owner = home.stat()
    for path in (file, file.parent, file.parent.parent):
        os.chown(path, owner.st_uid, owner.st_gid)
