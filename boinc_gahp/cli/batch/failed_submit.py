"""What people can do after a submit that failed: each command that is told works as it is."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch.opening import command, words_as_typed
from boinc_gahp.errors import (
    DatabaseTrouble,
    GahpError,
    JobRefused,
    JobsNotListed,
    NameInUse,
    ProjectDown,
    QuotaExceeded,
)
from boinc_gahp.states import BatchState
from boinc_gahp.terminal import command_line, words

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from boinc_gahp.api import Project
    from boinc_gahp.rpc import BatchDetails

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


def what_next(project: Project, typed: Typed, error: GahpError, njobs: int) -> Iterator[str]:
    """Yield messages for a submit that failed, about what is left on the project and what to do."""
    from boinc_gahp.api import drop_begun, is_final

    if isinstance(error, _PASSING) or not is_final(error):
        yield f"to continue: {typed.to_continue}"
        return
    if isinstance(error, NameInUse):
        yield (
            "names that begin with the batch's are free for every new batch: leave the names out, "
            "or use --name-jobs '{batch}_{index}'"
        )
    if typed.options.name is None:
        drop_begun(project.session, typed.name)
    if typed.options.split:
        yield from _after_split(typed, error, njobs)
        return
    yield from _after_one(project, typed, error, njobs)


def _after_one(project: Project, typed: Typed, error: GahpError, njobs: int) -> Iterator[str]:
    from boinc_gahp.api import left_of

    again = f"to try again, once that is fixed: {typed.as_it_was}"
    abort = command(typed.options, "abort", f"name:{typed.name}")
    try:
        left = left_of(project.session, typed.name)
    except GahpError as trouble:
        yield f"it is not known whether a batch was made: {trouble}"
        yield f"to abort what may be left of it: {abort}"
        return
    if left is None:
        yield from _after_nothing(error, njobs, again)
        return
    if left.batch.state not in (BatchState.ABORTED, BatchState.RETIRED):
        yield from _after_begun(typed, error, left, again, abort)
        return
    if left.jobs:
        yield (
            f"{words.count(len(left.jobs), 'job')} had been made, and are aborted: no other job "
            "can have their names"
        )
    if typed.options.name is None:
        yield f"nothing is left on the project: its batch is retired; {again}"
    else:
        name = _free_name(project, typed.name)
        shown = typed.as_it_was if name is None else typed.named(name)
        yield (
            f"batch {words.printable(typed.name)} is retired, and no other can have its name; to "
            f"try again, once that is fixed: {shown}"
        )


def _after_begun(
    typed: Typed, error: GahpError, left: BatchDetails, again: str, abort: str
) -> Iterator[str]:
    """Yield what to do about a batch that is there."""
    njobs = len(left.jobs)
    name = words.printable(typed.name)
    # Jobs that were made cannot be changed, and other jobs are needed after such an error.
    is_stuck = njobs > 0 and isinstance(error, _HOPELESS)
    if left.batch.state is BatchState.INIT and not is_stuck:
        has = f"with {words.count(njobs, 'job')}" if njobs else "without jobs"
        yield f"batch {name} is there, {has}; {again}"
        yield f"to give it up: {abort}"
    else:
        yield f"to abort what is left of batch {name}: {abort}"


def _after_nothing(error: GahpError, njobs: int, again: str) -> Iterator[str]:
    """Yield what to do if no batch was made."""
    if isinstance(error, JobRefused) and not isinstance(error, NameInUse):
        if error.job_name is not None and njobs > 1:
            yield "the same command with --dry-run lists the jobs that would be refused"
        return
    yield again


def _after_split(typed: Typed, error: GahpError, njobs: int) -> Iterator[str]:
    """Yield what to do if one of several batches failed; those before it are submitted."""
    if not isinstance(error, _HOPELESS):
        yield f"to try again, once that is fixed: {typed.to_continue}"
    elif not isinstance(error, NameInUse) and njobs > 1:
        yield "the same command with --dry-run lists the jobs that would be refused"
    yield f"to see which batches there are: {command(typed.options, 'list')}"


def _free_name(project: Project, name: str) -> str | None:
    """Return a similar name that no batch has."""
    from boinc_gahp.api import similar_names
    from boinc_gahp.errors import NotFound

    for similar in islice(similar_names(name), _TRIES):
        try:
            project.rpc.query_batch(batch_name=similar)
        except NotFound:
            return similar
        except GahpError:
            continue
    return None
