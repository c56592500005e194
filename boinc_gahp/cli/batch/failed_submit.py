"""The command that continues a submit that failed."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch.opening import command, words_as_typed
from boinc_gahp.errors import (
    DatabaseTrouble,
    GahpError,
    JobRefused,
    JobsNotListed,
    NotFound,
    NotOwner,
    ProjectDown,
    QuotaExceeded,
)
from boinc_gahp.states import BatchState
from boinc_gahp.terminal.output import command_line

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from boinc_gahp.api.project import Project

#: After these the same command may succeed later.
_PASSING = (ProjectDown, DatabaseTrouble, QuotaExceeded)
#: After these it cannot, as it is.
_HOPELESS = (JobRefused, JobsNotListed)
#: How many names are tried for another batch.
_TRIES = 20


class Typed:
    """The command line that failed.

    Args:
        arguments: its words after the action.
        config: the value of ``--config`` before them.
        options: what they say.
        name: the name of the batch, given or made up.
        action: ``submit`` or ``run``.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        config: str | None,
        options: Namespace,
        name: str,
        action: str = "submit",
    ) -> None:
        self._action = action
        self._arguments = list(arguments)
        self._config = config
        self.options = options
        self.name = name

    @property
    def as_it_was(self) -> str:
        """The command as it was typed."""
        return self._shown(self._arguments)

    @property
    def to_continue(self) -> str:
        """The command that continues this submit, also if its batch's name was made up."""
        return self.as_it_was if self.options.name is not None else self.named(self.name)

    def named(self, name: str) -> str:
        """Return the command with another name for the batch."""
        kept = []
        skip = False
        end = self._arguments.index("--") if "--" in self._arguments else len(self._arguments)
        for word in self._arguments[:end]:
            if not skip and word != "--name" and not word.startswith("--name="):
                kept.append(word)
            skip = word == "--name"
        return self._shown([*kept, "--name", name, *self._arguments[end:]])

    def _shown(self, arguments: Sequence[str]) -> str:
        return command_line(words_as_typed(self._action, arguments, self._config))


def how_to_continue(project: Project, typed: Typed, error: GahpError) -> str:
    """Return the command that continues a submit that failed, and when to give it.

    Empty if the batch's name is what was refused.
    """
    from boinc_gahp.api.comparing import is_final
    from boinc_gahp.api.submission import drop_begun

    if isinstance(error, _PASSING) or not is_final(error):
        return f"to continue: {typed.to_continue}"
    if typed.options.split:
        # The batches before it are submitted; jobs that were refused need others instead.
        if isinstance(error, _HOPELESS):
            return f"to see which batches there are: {command(typed.options, 'list')}"
        again = typed.to_continue
    elif typed.options.name is None:
        drop_begun(project.session, typed.name)
        again = typed.as_it_was
    elif isinstance(error, JobRefused) and error.job_name is None:
        return ""
    else:
        name = _usable_name(project, typed.name, error)
        again = typed.as_it_was if name == typed.name else typed.named(name)
    return f"to continue, once that is fixed: {again}"


def _usable_name(project: Project, name: str, error: GahpError) -> str:
    """Return the name, or a similar one if its batch takes no other jobs."""
    from boinc_gahp.api.request import similar_names

    for each in islice(chain([name], similar_names(name)), _TRIES):
        try:
            left = project.rpc.query_batch(batch_name=each)
        except NotFound:
            return each
        except NotOwner:
            continue
        except GahpError:
            return name
        # Jobs that were made cannot be changed.
        is_stuck = bool(left.jobs) and isinstance(error, _HOPELESS)
        if each == name and left.batch.state is BatchState.INIT and not is_stuck:
            return name
    return name
