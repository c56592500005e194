"""``boinc_gahp ledger reconcile``: sends pending requests when there is no daemon to do it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from boinc_gahp.cli.ledger import showing
from boinc_gahp.config.layers import load
from boinc_gahp.config.places import ledger_file, state_dir
from boinc_gahp.htcondor.owners import owner_key
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.ledger import all_pending_aborts
from boinc_gahp.terminal.output import print_lines
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.terminal.words import at
from boinc_gahp.text import count, printable

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from boinc_gahp.config.settings import Settings
    from boinc_gahp.htcondor.reconciling import Reconciliation
    from boinc_gahp.ledger.rows import BatchRow
    from boinc_gahp.ledger.store import Store

_DESCRIPTION = """\
Sends requests that did not reach a project: it aborts cancelled jobs, and retires finished batches,
so that the project can delete their files. HTCondor stops a user's daemon when the user's last job
has left the queue. What the daemon could not send is sent by the user's next daemon, or by this
command, except for projects for which a daemon of this user works now: it sends these itself.
If a submit of HTCondor 9 was interrupted, and HTCondor has not asked for it for an hour, its jobs
are aborted.
"""
_EXAMPLES = (
    "boinc_gahp ledger reconcile",
    "boinc_gahp ledger reconcile --quiet --timeout 600  # as cron does it",
)


def run(options: Namespace) -> int:
    """Send them; print what was done, and what remains and why."""
    deadline = time.monotonic() + options.timeout
    settings = load(options.config)
    path = ledger_file(settings)
    if not showing.exists(path):
        if not options.quiet:
            print(f"Nothing is to be sent: there is no ledger {path} yet.")
        return 0
    from boinc_gahp import logs
    from boinc_gahp.fetch.context import Opener
    from boinc_gahp.htcondor.reconciling import reconcile

    logs.start(settings)
    opener = Opener()
    try:
        store = opener.ledger(settings).store
        before = _submit_aborts(store)
        reconciliations = reconcile(settings, opener, deadline)
        after = _submit_aborts(store)
        is_done = not after and all(
            each.problem is None and not any(left for _, left in each.pending or ())
            for each in reconciliations
        )
        quiet = options.quiet
        lines = [line for each in reconciliations for line in _lines(settings, store, each, quiet)]
        worked_for = {owner_key(each.url, each.account) for each in reconciliations}
        lines += list(_abort_lines(before, after, worked_for, quiet))
    finally:
        opener.close()
        logs.stop()
    if not (lines or quiet):
        lines = ["Nothing is to be sent."]
    print_lines(lines)
    return 0 if is_done else 1


def run_parser() -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser(
        "ledger reconcile",
        _DESCRIPTION,
        examples=_EXAMPLES,
        statuses={
            0: "all requests are sent",
            1: "some requests are still to be sent, or the ledger could not be read",
        },
    )
    timeout = {"--timeout SECONDS": "start no more requests after this time (default: 60)"}
    parser.takes(timeout, default=60.0)
    parser.takes({"--quiet": "print only what is still to be sent, and why"})
    return parser.with_common()


def _lines(
    settings: Settings, store: Store, reconciliation: Reconciliation, quiet: bool
) -> Iterator[str]:
    project = f"{reconciliation.url} {showing.project_words(reconciliation.project_name)}"
    if reconciliation.problem is not None:
        yield f"{project}: {printable(reconciliation.problem)}"
        return
    if reconciliation.pending is None:
        if not quiet:
            lock = AccountLock(state_dir(settings), reconciliation.url, reconciliation.account)
            process = lock.holder()
            who = "" if process is None else f" (process {process})"
            yield f"{project}: left to the daemon{who} that is working for it"
        return
    kinds = (("job", "aborted"), ("batch", "retired"), ("batch", "aborted"))
    done, left = [], []
    for (before, after), (what, verb) in zip(reconciliation.pending, kinds, strict=True):
        if before > after:
            done.append(f"{count(before - after, what)} {verb}")
        if after:
            left.append(f"{count(after, what)} to be {verb}")
    if done and not quiet:
        yield f"{project}: done: {', '.join(done)}"
    if left:
        yield f"{project}: not sent yet: {', '.join(left)}"
        yield from (f"  {reason}" for reason in _reasons(store, reconciliation))


def _reasons(store: Store, reconciliation: Reconciliation) -> Iterator[str]:
    jobs = JobLedger(store)
    owner = (reconciliation.url, reconciliation.account)
    now = time.time()
    trouble = jobs.troubles().get(owner)
    if trouble is not None:
        text, since = trouble
        yield f"since {at(since)}: {printable(text)}"
    for batch in jobs.batches(*owner, "planned", "sent", "giving_up", "ended"):
        for note in showing.batch_notes(batch, now):
            yield f"batch {printable(batch.name)}: {note}"
    for job in jobs.pending_aborts(*owner):
        if job.trouble:
            yield f"job {job.job_name}: {printable(job.trouble)}"


def _submit_aborts(store: Store) -> dict[tuple[str, str], list[BatchRow]]:
    """Return BOINC_SUBMIT's batches with pending aborts, by project and account.

    A submission that may still be under way is not among them.
    """
    now = time.time()
    found: dict[tuple[str, str], list[BatchRow]] = {}
    for batch in all_pending_aborts(store):
        if batch.state == "giving_up" or batch.not_before < now:
            found.setdefault((batch.project_url, batch.account), []).append(batch)
    return found


def _abort_lines(
    before: dict[tuple[str, str], list[BatchRow]],
    after: dict[tuple[str, str], list[BatchRow]],
    worked_for: set[tuple[str, str]],
    quiet: bool,
) -> Iterator[str]:
    from boinc_gahp.submit.control import FORGOTTEN

    for owner in before.keys() | after.keys():
        left = after.get(owner, [])
        done = len(before.get(owner, [])) - len(left)
        of = f"{owner[0]}: {{}} of submits of HTCondor 9 that were cut short"
        if done > 0 and not quiet:
            yield of.format(f"done: {count(done, 'abort')}")
        waiting = [batch.not_before for batch in left if batch.state == "sent"]
        if owner_key(*owner) not in worked_for:
            why = "the settings do not have this project"
        elif waiting:
            why = f"HTCondor may ask for them until {at(max(waiting) + FORGOTTEN)}"
        else:
            why = "the log says why"
        if left:
            yield of.format(f"not sent yet: {count(len(left), 'abort')}") + f" ({why})"
