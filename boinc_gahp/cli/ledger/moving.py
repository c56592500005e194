"""``boinc_gahp ledger move``: a project has a new address, or an account a new authenticator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from boinc_gahp.cli.ledger import words
from boinc_gahp.config.accounts import authenticator_of, find_project
from boinc_gahp.config.layers import load
from boinc_gahp.config.places import ledger_file, state_dir
from boinc_gahp.config.urls import are_one_project
from boinc_gahp.errors import RpcError
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.store import Store
from boinc_gahp.terminal.parsing import Parser
from boinc_gahp.text import count, printable

if TYPE_CHECKING:
    from boinc_gahp.config.settings import ProjectSettings, Settings

_DESCRIPTION = """\
Assigns everything that the ledger has of one project and account (jobs, batches, owed requests) to
another. Use it when a project has a new address, or your account a new authenticator. First put the
new address or authenticator into the settings. This command asks the project whether the account
has the batches, so that no jobs get lost. Addresses that differ only in http and https, a default
port or the final slash are the same project; nothing needs to be moved then. If only the
authenticator has changed, give the same address as OLD and NEW.
"""
_EXAMPLES = (
    "boinc_gahp ledger move http://old.example.edu/ https://new.example.edu/",
    "boinc_gahp ledger move https://new.example.edu/ https://new.example.edu/",
)


def run(arguments: list[str], config: str | None) -> int:
    """Move; print what was moved; return 0."""
    options = run_parser(config).read(arguments)
    settings = load(options.config)
    path = ledger_file(settings)
    if not words.exists(path):
        raise words.LedgerActionRefused(words.none_yet(path))
    name, project = find_project(settings, options.new)
    new = (project.url, authenticator_of(settings, project).account)
    store = Store(path)
    try:
        jobs = JobLedger(store)
        old = (options.old, _account(jobs, options.old, new, options.account))
        if not options.unchecked:
            _check(jobs, old, settings, project)
        lock = AccountLock(state_dir(settings), *old)
        if not lock.try_acquire():
            raise words.LedgerActionRefused(
                f"nothing was moved: a boinc_gahp (process {lock.holder()}) is working for "
                f"{old[0]} with the earlier settings; end that process (HTCondor starts another "
                "one within seconds), and run this command again"
            )
        try:
            moved = jobs.move(old, new, name)
        finally:
            lock.release()
    finally:
        store.close()
    print(
        f"Moved from {printable(old[0])} (account key {old[1]}) to {new[0]} (account key "
        f"{new[1]}): {count(moved.jobs, 'job')}, "
        f"{count(moved.batches, 'batch', 'batches')}, "
        f"{count(moved.submit_aborts, 'owed request')}."
    )
    return 0


def run_parser(config: str | None = None) -> Parser:
    """Return the parser of the action's arguments."""
    parser = Parser(
        "ledger move",
        _DESCRIPTION,
        examples=_EXAMPLES,
        statuses={1: "nothing was moved: stderr says why"},
    )
    parser.add_argument(
        "old", metavar="OLD", help="the project's address as ledger status shows it"
    )
    parser.add_argument(
        "new",
        metavar="NEW",
        help="the project as it is in the settings now: its address, or NAME of [projects.NAME]",
    )
    parser.add_argument(
        "--account",
        metavar="KEY",
        help="the account key to move, if the ledger has several accounts on OLD",
    )
    parser.add_argument(
        "--unchecked",
        action="store_true",
        help="do not ask the project; if the account does not have the jobs, they are lost",
    )
    parser.add_config(config)
    return parser


def _account(jobs: JobLedger, old: str, new: tuple[str, str], wanted: str | None) -> str:
    """Return the account whose jobs and batches are to be moved."""
    accounts = jobs.accounts(old)
    if are_one_project(old, new[0]) and new[1] in accounts:
        accounts.remove(new[1])
        if not accounts:
            raise words.LedgerActionRefused(
                f"there is nothing to move: {old} and {new[0]} are the same project, and all "
                "that the ledger has of it belongs to the account in the settings"
            )
    if wanted is not None:
        accounts = [account for account in accounts if account == wanted]
    if len(accounts) == 1:
        return accounts[0]
    if accounts:
        raise words.LedgerActionRefused(
            f"the ledger has several accounts on {old}: choose one of these keys with --account: "
            f"{', '.join(accounts)}"
        )
    known = ", ".join(f"{url} (account key {key})" for url, key, _ in jobs.owners())
    raise words.LedgerActionRefused(
        f"the ledger has nothing of {old}{'' if wanted is None else f' with account key {wanted}'};"
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
        raise words.LedgerActionRefused(
            f"nothing was moved: {project.url} cannot be asked for the account's batches: {error}; "
            "run this command again when it answers, or with --unchecked"
        ) from None
    if there.isdisjoint(batch.name for batch in batches):
        raise words.LedgerActionRefused(
            f"nothing was moved: the account at {project.url} has none of the "
            f"{count(len(batches), 'batch', 'batches')} of {old[0]} (account key {old[1]}); "
            "is it the same project, and the same account? If so, use --unchecked"
        )
