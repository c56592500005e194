"""A home and a shell for the examples of a page."""

import os
import signal
import subprocess
import sys
from pathlib import Path

#: Seconds that all examples of a page may take, on a busy machine.
_LONGEST = 1200.0
#: Seconds after which the page's background processes are killed.
_GRACE = 60.0
#: Seconds that the test of a page may take.
LIMIT = _LONGEST + 2 * _GRACE


class Sandbox:
    """A home for a page's examples, and the shell that runs them."""

    def __init__(self, directory):
        self._directory = directory
        self._home = directory / "home"
        self._home.mkdir()
        kept = {name: value for name, value in os.environ.items() if name in {"LANG", "TMPDIR"}}
        self._environment = kept | {
            "HOME": str(self._home),
            "USER": "alice",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
            "COLUMNS": "100",
            "PYTHONWARNINGS": "error",
        }

    def run(self, commands):
        """Run command lines in one shell; each with its output, and status, in a file."""
        script = ["trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT", f"cd {self._home}"]
        for number, command in enumerate(commands):
            path = self._directory / f"{number}.sh"
            path.write_text(command.line + "\n", "utf-8")
            out = self._directory / f"{number}.out"
            script.append(f". {path} >{out} 2>&1 </dev/null")
            script.append(f"echo $? >{out}.status")
            script.append(f'[ "$(cat {out}.status)" = {command.status} ] || exit 0')
        main = self._directory / "page.sh"
        main.write_text("\n".join(script) + "\n", "utf-8")
        process = subprocess.Popen(
            ["bash", str(main)],
            env=self._environment,
            cwd=self._home,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(_LONGEST)
        finally:
            try:
                os.killpg(process.pid, signal.SIGTERM if process.returncode is None else 0)
                process.wait(_GRACE)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def result(self, number):
        """Return how a command ended (-1: it did not), and what it printed."""
        out = self._directory / f"{number}.out"
        status = Path(f"{out}.status")
        text = out.read_text("utf-8") if out.exists() else "(it was not reached)"
        return (int(status.read_text()) if status.exists() else -1), text

    def conversation(self, example):
        """Return a command that has a conversation on a terminal."""
        path = self._directory / f"console{example.number}.txt"
        path.write_text(example.text + "\n", "utf-8")
        return f"{sys.executable} {Path(__file__).parent / 'type_console.py'} {path}"
