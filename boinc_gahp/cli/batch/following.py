"""What ``boinc_gahp batch submit`` does after the submit: ``--wait``, and ``--fetch DIR``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from boinc_gahp.cli.batch import fetching, waiting
from boinc_gahp.cli.batch.opening import command
from boinc_gahp.cli.main import FAILED, INTERRUPTED
from boinc_gahp.terminal.parsing import common_words, not_empty

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from boinc_gahp.api.batch import Batch
    from boinc_gahp.api.project import Project
    from boinc_gahp.terminal.parsing import Parser

#: The exit statuses of a submit that waits.
FOLLOWED = {
    FAILED: "an error; with --fetch also: something could not be fetched",
    waiting.SOME_FAILED: "with --wait or --fetch: some jobs failed",
    waiting.ALL_FAILED: "with --wait or --fetch: all jobs failed, or the batch was aborted",
}


def add_following(parser: Parser) -> None:
    """Add the options ``--wait`` and ``--fetch``."""
    parser.add_argument(
        "--wait",
        action="store_true",
        help='wait until all jobs are over, and show the progress, like "batch wait"',
    )
    parser.add_argument(
        "--fetch",
        type=not_empty,
        metavar="DIR",
        help='wait, and then fetch the outputs into DIR, like "batch fetch"; several batches '
        "of --split go into directories there with their names",
    )


def is_followed(options: Namespace) -> bool:
    """Tell whether the command goes on after the submit."""
    return bool(options.wait or options.fetch)


def check_following(parser: Parser, options: Namespace) -> None:
    """Refuse options that do not go together."""
    if is_followed(options):
        name = "--fetch" if options.fetch else "--wait"
        for other, its_name in ((options.json, "--json"), (options.dry_run, "--dry-run")):
            if other:
                parser.error(f"{its_name} and {name} do not go together")


def follow(
    project: Project, options: Namespace, batches: Sequence[Batch], config: str | None
) -> int:
    """Wait for the batches and fetch their outputs, if this is wanted; return the exit status."""
    if not is_followed(options):
        return 0
    fetches = [_fetch_words(options, batch, of=len(batches)) for batch in batches]
    lines = [command(options, "fetch", *words) for words in fetches]
    status = waiting.wait_for(
        options, project, batches, afterwards=" && ".join(lines) if options.fetch else None
    )
    if options.fetch is None or any(not batch.is_over or batch.gone for batch in batches):
        return status
    statuses = []
    for words in fetches:
        statuses.append(fetching.fetch([*words, *common_words(options)], config))
        if statuses[-1] == INTERRUPTED:
            break
    return _together(statuses)


def _fetch_words(options: Namespace, batch: Batch, *, of: int) -> list[str]:
    """Return the arguments of the fetch of one of ``of`` batches."""
    if options.fetch is None:
        return [str(batch.id)]
    from boinc_gahp.api.folders import folder_name

    where = Path(options.fetch)
    return [str(batch.id), str(where if of == 1 else where / folder_name(batch.name))]


def _together(statuses: Sequence[int]) -> int:
    """Return one exit status for several fetches: that of the worst, if they differ."""
    for worst in (INTERRUPTED, FAILED):
        if worst in statuses:
            return worst
    if len(set(statuses)) == 1:
        return statuses[0]
    return waiting.SOME_FAILED
