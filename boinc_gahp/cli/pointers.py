"""Where to go: for words that are an action of a command, and for a terminal without a command."""

from __future__ import annotations

from importlib import import_module

from boinc_gahp.cli import COMMANDS
from boinc_gahp.terminal.output import command_line
from boinc_gahp.text import did_you_mean, nearest

#: What is said before the console's prompt.
WELCOME = """\
What most people want:
  boinc_gahp batch submit APP ...     send jobs; then batch wait and batch fetch
  boinc_gahp batch run --image ...    let volunteers run your own program
  boinc_gahp check                    check the settings and your account
  boinc_gahp login URL                use a project on which you have an account
  boinc_gahp demo                     see 20 jobs run on this machine
  boinc_gahp local-project init DIR   make a project to play with
  boinc_gahp --help                   all commands

Below is the prompt of the GAHP protocol, which HTCondor uses. Ctrl-D leaves it.
"""


def instead(word: str, arguments: list[str]) -> str:
    """Return what to type instead of a command that does not exist; "" if nothing is like it.

    Args:
        word: the word in a command's place.
        arguments: the words after it.
    """
    actions = _actions()
    if groups := actions.get(word):
        lines = (command_line(["boinc_gahp", group, word, *arguments]) for group in groups)
        return f"; type: {', or '.join(lines)}"
    if near := did_you_mean(word, COMMANDS):
        return near
    like = nearest(word, actions)
    return f"; did you mean boinc_gahp {actions[like][0]} {like}?" if like else ""


def _actions() -> dict[str, list[str]]:
    """Return the commands that have an action of a name, ``batch`` before the others."""
    found: dict[str, list[str]] = {}
    for command, (module, _) in COMMANDS.items():
        for action in getattr(import_module(module), "ACTIONS", ()):
            found.setdefault(action, []).append(command)
    return found
