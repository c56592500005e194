"""A shell on a terminal, with boinc_gahp's completion, as somebody has it who types."""

import os
import re
import shutil

import pexpect

#: How each shell is started without anybody's own settings, and what it is told first.
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], "PS1='ready> '; source {script}"),
    "zsh": (
        ["-f", "-i"],
        "PS1='ready> '; autoload -Uz compinit; compinit -D -u; setopt no_beep; source {script}",
    ),
    "fish": (
        ["--no-config", "--private", "-i"],
        "function fish_prompt; echo 'ready> '; end; function fish_right_prompt; end; "
        "source {script}",
    ),
}


class Shell:
    """A shell that runs until it is closed; a context manager."""

    def __init__(self, name, script, environment, cwd, first=None):
        program = shutil.which(name)
        assert program is not None, f"{name} is missing: apt install {name}"
        options, usual = SHELLS[name]
        self._child = pexpect.spawn(
            program,
            options,
            env={**os.environ, "TERM": "xterm", **environment},
            cwd=str(cwd),
            encoding="utf-8",
            timeout=60,
            dimensions=(40, 200),
        )
        self._child.send((first or usual).format(script=script) + "; echo be'gun'\r")
        self._child.expect("begun")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """End the shell."""
        self._child.close(force=True)

    def complete(self, typed):
        """Type words, then Tab; return the words that the shell then has on its line."""
        # The line's beginning is put before it afterwards: then the shell itself tells its words.
        self._child.send(f"{typed}\t\x01printf '<%s>' \x05; echo ' said'\r")
        self._child.expect(r"(<boinc_gahp>[^\r\n]*) said")
        match = self._child.match
        return re.findall("<([^<>]*)>", match[1])
