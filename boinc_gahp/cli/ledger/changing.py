"""``boinc_gahp ledger move`` and ``forget``, which change what the ledger has."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from boinc_gahp.cli.ledger import showing
from boinc_gahp.config.accounts import authenticator_of, find_project
from boinc_gahp.config.layers import load
from boinc_gahp.config.places import state_dir
from boinc_gahp.config.urls import are_one_project
from boinc_gahp.errors import LedgerError, RpcError
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.terminal.output import agreed
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.text import count, printable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.ledger.jobs import JobLedger
    from boinc_gahp.ledger.rows import BatchRow, JobRow

_MOVE = """\
Moves everything that the ledger has of one project and account to another: jobs, batches, and
requests still to be sent. Use it when a project has a new address, or your account a new
authenticator. First put the new address or authenticator into the settings. This command asks the
project whether the account has the batches, so that no jobs get lost. If only the authenticator has
changed, give the same address as OLD and NEW. Addresses that differ only in http and https, a
default port or the final slash are the same: then nothing needs to be moved.
"""
_MOVES = (
    "boinc_gahp ledger move http://old.example.edu/ https://new.example.edu/",
    "boinc_gahp ledger move https://new.example.edu/ https://new.example.edu/",
)
_FORGET = """\
Deletes jobs from the ledger (see boinc_gahp ledger show --help; a batch means all its jobs). If
HTCondor asks about a deleted job later, the job is unknown, and HTCondor puts it on hold.
Unfinished jobs, and jobs that the project has yet to abort, are deleted only with --alive. They
then continue on the project: nothing is aborted or retired, and no outputs are fetched. Jobs that
have ended are deleted without this command, after the time that [htcondor] history sets.
"""

_ALIVE = """\
{jobs} unfinished, or still to be aborted on the project. Forgetting a job does not abort it: it
continues on the project until it ends, or until the project no longer keeps its batch. Its outputs
are not fetched.
"""


def move(options: Namespace) -> int:
    """Move; print what was moved; return 0."""
    settings = load(options.config)
    with showing.existing(settings, read_only=False) as jobs:
        name, project = find_project(settings, options.new)
        new = (project.url, authenticator_of(settings, project).account)
        old = (options.old, _account(jobs, options.old, new, options.account))
        if not options.unchecked:
            _check(jobs, old, settings, project)
        lock = AccountLock(state_dir(settings), *old)
        if not lock.try_acquire():
            raise LedgerError(
                f"nothing was moved: a boinc_gahp (process {lock.holder()}) is working for "
                f"{old[0]} with the earlier settings; end that process (HTCondor starts another "
                "one within seconds), and run this command again"
            )
        try:
            moved = jobs.move(old, new, name)
        finally:
            lock.release()
    print(
        f"Moved from {printable(old[0])} (fingerprint {old[1]}) to {new[0]} (fingerprint "
        f"{new[1]}): {count(moved.jobs, 'job')}, {count(moved.batches, 'batch')}, "
        f"{count(moved.submit_aborts, 'request')} still to be sent."
    )
    return 0


def move_parser() -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser(
        "ledger move",
        _MOVE,
        examples=_MOVES,
        statuses={1: "nothing was moved: stderr says why"},
    )
    parser.takes(
        {
            "OLD": "the project's address as ledger status shows it",
            "NEW": "the project as it is in the settings now: its address, or NAME of "
            "[projects.NAME]",
            "--account FINGERPRINT": "the account to move, if the ledger has several on OLD",
            "--unchecked": "do not ask the project; if the account does not have the jobs, they "
            "are lost",
        }
    )
    return parser.with_common()


def _account(jobs: JobLedger, old: str, new: tuple[str, str], wanted: str | None) -> str:
    """Return the account whose jobs and batches are to be moved."""
    accounts = jobs.accounts(old)
    if are_one_project(old, new[0]) and new[1] in accounts:
        accounts.remove(new[1])
        if not accounts:
            raise LedgerError(
                f"there is nothing to move: {old} and {new[0]} are the same project, and all "
                "that the ledger has of it belongs to the account in the settings"
            )
    if wanted is not None:
        accounts = [account for account in accounts if account == wanted]
    if len(accounts) == 1:
        return accounts[0]
    if accounts:
        raise LedgerError(
            f"the ledger has several accounts on {old}: choose one of these fingerprints "
            f"with --account: {', '.join(accounts)}"
        )
    known = ", ".join(f"{url} (fingerprint {key})" for url, key, _ in jobs.owners())
    raise LedgerError(
        f"the ledger has nothing of {old}{'' if wanted is None else f' with fingerprint {wanted}'};"
        f" it has {known or 'no project'}"
    )


def _check(
    jobs: JobLedger, old: tuple[str, str], settings: Settings, project: ProjectSettings
) -> None:
    """Ask the project whether the account has the batches that are to be moved to it."""
    batches = jobs.batches(*old, "submitted")
    if not batches:
        return
    from boinc_gahp.rpc.client import WebRpcs
    from boinc_gahp.rpc.options import ClientOptions

    try:
        with WebRpcs(
            project.url, project.authenticator or "", options=ClientOptions.of(settings, project)
        ) as client:
            there = {batch.name for batch in client.query_batches()}
    except RpcError as error:
        raise LedgerError(
            f"nothing was moved: {project.url} cannot be asked for the account's batches: {error}; "
            "run this command again when it answers, or with --unchecked"
        ) from None
    if there.isdisjoint(batch.name for batch in batches):
        raise LedgerError(
            f"nothing was moved: the account at {project.url} has none of the "
            f"{count(len(batches), 'batch')} of {old[0]} (fingerprint {old[1]}); "
            "is it the same project, and the same account? If so, use --unchecked"
        )


# -- forgetting


def forget(options: Namespace) -> int:
    """Drop the named jobs and batches; return 0, or 1 if that was not done."""
    with showing.existing(load(options.config), read_only=False) as jobs:
        rows, batches = _named(jobs, options.names)
        living = [row for row in rows.values() if row.is_alive or row.abort_pending]
        if living:
            if not options.alive:
                raise _still_alive(jobs, living)
            print(_ALIVE.rstrip().format(jobs=count(len(living), "job is", "jobs are")))
        what = count(len(rows), "job")
        if batches:
            what += f" and {count(len(batches), 'batch')}"
        if not options.yes and sys.stdin.isatty() and not agreed(f"Forget {what}?", sys.stdout):
            print("Nothing was forgotten.")
            return 1
        forgotten = jobs.forget(list(rows), list(batches), alive=options.alive)
        print(f"Forgotten: {count(forgotten, 'job')}.")
        if any(jobs.batch(each) is not None for each in batches):
            print("The batch stays until it is retired on the project.")
    return 0


def forget_parser() -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser(
        "ledger forget",
        _FORGET,
        examples=("boinc_gahp ledger forget 12.0", "boinc_gahp ledger forget 12.0 13.0 --yes"),
        statuses={1: "nothing was deleted: stderr says why, or you answered no"},
    )
    parser.takes({"JOB|BATCH ...": "what to delete; a batch means all its jobs"}, dest="names")
    parser.takes({"--alive": "also delete unfinished jobs"})
    parser.takes({"--yes": "do not ask, even on a terminal"})
    return parser.with_common()


def _named(jobs: JobLedger, names: Sequence[str]) -> tuple[dict[int, JobRow], dict[int, BatchRow]]:
    """Return jobs and batches with these names by ids; the jobs of the batches are included."""
    rows: dict[int, JobRow] = {}
    batches: dict[int, BatchRow] = {}
    for name in names:
        found, of_name = showing.find(jobs, name)
        if len(found) + len(of_name) > 1:
            several = [jobs.htcondor_id(row) for row in found]
            several += [batch.name for batch in of_name]
            raise LedgerError(f"{name!r} may mean {', '.join(several)}: name one of them")
        for batch in of_name:
            batches[batch.id] = batch
            found = jobs.jobs_of(batch.id)
        rows.update((row.id, row) for row in found)
    return rows, batches


def _still_alive(jobs: JobLedger, living: Sequence[JobRow]) -> LedgerError:
    """Return the error for jobs that are not over."""
    first = living[0]
    others = f", and {len(living) - 1} more like it" if len(living) > 1 else ""
    if first.is_alive:
        state, remedy = showing.state_words(first), "Remove it with condor_rm"
    else:
        state = "cancelled, but not aborted on the project yet"
        remedy = "Abort it with boinc_gahp ledger reconcile"
    return LedgerError(
        f"nothing was forgotten: job {jobs.htcondor_id(first)} is {state}{others}. {remedy}, or "
        "use --alive: then it continues on the project, and nobody aborts it"
    )
