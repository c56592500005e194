"""Where to go: for words that are an action of a command, and for a terminal without a command."""

from __future__ import annotations

import shlex
from importlib import import_module

from boinc_gahp.cli import COMMANDS
from boinc_gahp.text import did_you_mean, nearest

#: Words that are no action, or not only one, and the actions that people mean by them.
MEANT = {
    "status": ("batch list", "ledger status", "local-project status"),
    "jobs": ("batch show", "ledger status"),
    "ls": ("batch list", "ledger status"),
    "queue": ("batch list", "ledger status"),
    "q": ("batch list", "ledger status"),
    "cancel": ("batch abort",),
    "rm": ("batch abort",),
    "init": ("local-project init",),
    "start": ("local-project run",),
}

#: Whose actions a command's are, where it is not the only one that has them.
_OF = {"batch": "your batches", "ledger": "jobs from HTCondor", "local-project": "a local project"}

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
        arguments: the words after it, which are repeated if there is only one thing to type.
    """
    actions = _actions()
    places = list(MEANT.get(word, ())) or [f"{group} {word}" for group in actions.get(word, ())]
    if places:
        if len(places) == 1:
            return f"; type: boinc_gahp {' '.join([places[0], *map(shlex.quote, arguments)])}"
        said = [f"boinc_gahp {place} ({_OF[place.partition(' ')[0]]})" for place in places]
        return f"; type {', '.join(said[:-1])} or {said[-1]}"
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
