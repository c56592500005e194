"""HTCondor's requests. They are quick because no project is asked; managers do the rest.

They use the ledger. A submit also looks at the files that its ad names, and a cancel waits until
nobody writes into the job's directory.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from boinc_gahp.config.accounts import authenticator_of, find_project, no_account
from boinc_gahp.config.places import state_dir
from boinc_gahp.errors import ConfigError, GahpError, LedgerError, NoSuchJob
from boinc_gahp.htcondor._context import AccountContext, CancelScopes
from boinc_gahp.htcondor._fetching import clear_away
from boinc_gahp.htcondor._job_ad import job_directory, read_ad
from boinc_gahp.htcondor._manager import AccountManager
from boinc_gahp.htcondor._problems import PersistentProblems
from boinc_gahp.htcondor._upkeep import check_interval
from boinc_gahp.htcondor.attributes import AdRefused, Attributes
from boinc_gahp.htcondor.owners import known_owners, owner_key
from boinc_gahp.htcondor.status_ad import status_ad, suspended
from boinc_gahp.ledger.account_lock import AccountLock
from boinc_gahp.ledger.jobs import JobLedger
from boinc_gahp.ledger.rows import NewJob
from boinc_gahp.states import HTCondorState
from boinc_gahp.threads import start

if TYPE_CHECKING:
    from collections.abc import Callable

    from boinc_gahp.config.settings import ProjectSettings, Settings
    from boinc_gahp.fetch.context import Opener
    from boinc_gahp.htcondor.owners import Owner
    from boinc_gahp.ledger.rows import JobRow

    #: The settings that a manager and its context are made from.
    Chosen = tuple[Settings, ProjectSettings]

log = logging.getLogger("boinc_gahp.htcondor")

#: Seconds between writing down which jobs HTCondor has asked about (less where leases are short),
#: and between checks for owners that have no manager here yet.
INTERVAL = 60.0
#: Seconds that a cancel waits for another process to stop writing into the job's directory;
#: HTCondor waits 300 (``gridmanager-batch.rst``, "Crashes").
CANCEL_TIMEOUT = 240.0
#: Seconds between checks whether it has.
_CHECK_INTERVAL = 0.05
#: Seconds for which a manager retries a request, at most. Then it notes in the ledger what is
#: wrong, and tries again later: HTCondor may end the process within minutes.
RETRY_TIME = 10.0
#: Seconds after which settings are read again.
SETTINGS_INTERVAL = 5.0
#: Seconds that closing waits for work under way: HTCondor may kill the process at once anyway.
CLOSING = 2.0

#: How a job names a project.
_HOW_TO_NAME = 'say which with +remote_BoincProject = "name" in the submit file'


class Service:
    """The work of the BLAH_* commands; thread-safe.

    Managers begin to work with the first request: one for each owner in the ledger that has
    unfinished business and whose authenticator is in the settings.

    Args:
        settings: all settings.
        opener: opens the ledger, and the contexts of managers.
        load_settings: reads the settings again: HTCondor keeps the daemon running while there are
            jobs, so it has to find a corrected authenticator. None: settings are not read again.
    """

    def __init__(
        self,
        settings: Settings,
        opener: Opener,
        load_settings: Callable[[], Settings] | None = None,
    ) -> None:
        self._settings = settings
        self._load_settings = load_settings
        self._settings_lock = threading.Lock()
        self._loaded = time.monotonic()
        self._last_message = ""
        # Whether the managers still have to be told of changed settings.
        self._changed = False
        self._opener = opener
        self._owners = known_owners(settings)
        self._scopes = CancelScopes()
        self._problems = PersistentProblems()
        self._lock = threading.Lock()
        self._ledger: JobLedger | None = None
        self._managers: dict[Owner, AccountManager] = {}
        # The settings that the managers and their contexts were made from.
        self._opened: dict[Owner, Chosen] = {}
        self._housekeeper: threading.Thread | None = None
        self._news = threading.Event()
        self._stopping = threading.Event()
        #: Guards the following notes, which are written into the ledger soon, or now and then.
        self._notes_lock = threading.Lock()
        #: Jobs that HTCondor has asked about, and when.
        self._polled: dict[int, float] = {}
        #: Jobs of which HTCondor was told that they have ended.
        self._reported: set[int] = set()
        #: Jobs, by their ids for HTCondor, that are still to be cancelled.
        self._cancels: set[str] = set()
        #: Jobs that HTCondor was told are running.
        self._shown_running: set[int] = set()

    # -- the requests

    def ping(self) -> None:
        """Check that this daemon can accept jobs; projects are not asked.

        HTCondor gets another answer: see :class:`boinc_gahp.htcondor.refusals.Refusals`.

        Raises:
            ConfigError: no project has an authenticator.
        """
        if not self._owners:
            self._reload_settings(0.0)
        if not self._owners:
            raise no_account(self._settings)
        self._jobs()

    def submit(self, ad: str) -> str:
        """Write a job into the ledger, or find that it was accepted before.

        Args:
            ad: the submit ad, unescaped; bytes that are not UTF-8 as surrogates (PEP 383).

        Returns:
            The job's id for HTCondor.

        Raises:
            GahpError: the text is the HoldReason.
        """
        self._reload_settings(SETTINGS_INTERVAL)
        try:
            return self._submit(ad)
        except (ConfigError, LedgerError):
            # A user who has just corrected this and released the job should not see it again.
            if not self._reload_settings(0.0):
                raise
            return self._submit(ad)

    def _submit(self, ad: str) -> str:
        try:
            description = read_ad(ad, self._settings.htcondor, self._project_of)
            name, project = find_project(self._settings, description.project, _HOW_TO_NAME)
            account = authenticator_of(self._settings, project).account
        except GahpError:
            if (accepted := self._accepted_before(ad)) is not None:
                return accepted
            raise
        jobs = self._jobs()
        # Whether this is a new attempt depends on what both sides have reported about the last one.
        self._write_urgent(jobs)
        row = jobs.accept(
            NewJob(
                job_directory=description.job_directory,
                project_url=project.url,
                account=account,
                project_name=name,
                app_name=description.app_name,
                group_key=description.group_key,
                size=description.size,
                description=description.to_json(),
            )
        )
        self._wake(owner_key(project.url, account), project)
        return jobs.htcondor_id(row)

    def _project_of(self, name: str | None) -> ProjectSettings | None:
        """Return the settings of a project that a job names; None: there is none, or no such."""
        try:
            return find_project(self._settings, name, _HOW_TO_NAME)[1]
        except ConfigError:
            return None

    def _accepted_before(self, ad: str) -> str | None:
        """Return the id of the job that a submit repeats, None if it is a new one.

        Files or settings may have changed since the job was accepted. It goes on all the same, so
        HTCondor should not put it on hold.
        """
        try:
            directory = job_directory(Attributes(ad))
        except AdRefused:
            return None
        jobs = self._jobs()
        self._write_urgent(jobs)
        row = jobs.accepted(directory)
        return None if row is None else jobs.htcondor_id(row)

    def status(self, job_id: str) -> tuple[int, str]:
        """Return a job's status as HTCondor numbers it, and the status ad.

        Raises:
            NoSuchJob: the ledger does not have it.
        """
        try:
            jobs = self._jobs()
            number = jobs.number_of(job_id)
            row = None if number is None else jobs.job(number, described=False)
        except LedgerError as error:  # HTCondor would hold the job after some
            return suspended(str(error))
        if row is None:
            raise NoSuchJob(
                f"job {job_id!r} is not in the ledger {jobs.store.path}: it was deleted there, "
                "or accepted with another state directory: bring that ledger back and release the "
                "job, or remove it and submit it again"
            )
        if row.is_alive:
            with self._notes_lock:
                self._polled[row.id] = time.time()
        here = jobs.store.failing or row.storage_trouble
        manager = self._managers.get(owner_key(row.project_url, row.account))
        attempts = "" if manager is None else manager.attempts(row.batch_id)
        answer = self._problems.answer_for(row, status_ad(row), here, attempts)
        return self._running_first(row, answer)

    def cancel(self, job_id: str) -> None:
        """Note that HTCondor does not want the job; from now on its directory is left alone.

        A job that is not known counts as cancelled. HTCondor forgets the job after any answer
        (``gridmanager-batch.rst``, "Life of a job"): if the cancel cannot be written into the
        ledger now, that is done as soon as possible.
        """
        try:
            self._cancel(self._jobs(), job_id)
        except LedgerError as error:
            log.error("Job %s is still to be cancelled: %s", job_id, error)
            with self._notes_lock:
                self._cancels.add(job_id)

    def _cancel(self, jobs: JobLedger, job_id: str) -> None:
        number = jobs.number_of(job_id)
        before = None if number is None else jobs.cancel(number)
        if before is None:
            return
        with self._notes_lock:
            self._shown_running.discard(before.id)
        self._scopes.close(before.id)
        owner = owner_key(before.project_url, before.account)
        manager = self._managers.get(owner)
        if before.writing and not (manager and manager.is_manager):
            self._wait_for_fetch(jobs, before)
        if before.state == "finished":
            clear_away(before)
        if manager is not None:
            manager.wake()

    def _running_first(self, row: JobRow, answer: tuple[int, str]) -> tuple[int, str]:
        """Report each job as running before it is completed, even if it only ran between two polls.

        Otherwise HTCondor writes no execute event into the job's log (seen with 23.9.6), and users
        and their programs wait for that. After a restart a job may be reported as running again.
        """
        with self._notes_lock:
            if answer[0] == HTCondorState.RUNNING:
                self._shown_running.add(row.id)
            elif (
                answer[0] == HTCondorState.COMPLETED
                and not row.end_reported
                and row.id not in self._shown_running
            ):
                self._shown_running.add(row.id)
                return HTCondorState.RUNNING, "[ ]"
        return answer

    def end_reported(self, job_id: str) -> None:
        """Note that the line with a job's status 4 or 5 was written completely; returns at once."""
        number = None if self._ledger is None else self._ledger.number_of(job_id)
        if number is not None:
            with self._notes_lock:
                self._reported.add(number)
                self._shown_running.discard(number)
            self._news.set()

    def close(self) -> None:
        """Write the last notes into the ledger, and stop the managers; returns within seconds.

        The next managers finish their work.
        """
        self._stopping.set()
        self._news.set()
        with self._lock:
            managers = list(self._managers.values())
            jobs = self._ledger
        for manager in managers:
            manager.stop()
        if self._housekeeper is not None:
            self._housekeeper.join(CLOSING)
        if jobs is not None:
            self._write_all(jobs)
        deadline = time.monotonic() + CLOSING
        for manager in managers:
            manager.close(max(0.0, deadline - time.monotonic()))

    # -- the settings

    def _reload_settings(self, age: float) -> bool:
        """Read the settings again if that was done more than ``age`` seconds ago.

        An open ledger stays where it is; managers get the new settings within seconds.

        Returns:
            Whether the settings have changed.
        """
        if self._load_settings is None:
            return False
        with self._settings_lock:
            now = time.monotonic()
            if now < self._loaded + age:
                return False
            self._loaded = now
            try:
                settings = self._load_settings()
            except ConfigError as error:  # somebody may be editing the file
                level = logging.DEBUG if str(error) == self._last_message else logging.WARNING
                log.log(level, "The previous settings stay in use: %s", error)
                self._last_message = str(error)
                return False
            self._last_message = ""
            with self._lock:
                if self._opener.opened is not None:
                    settings = replace(settings, state=self._settings.state)
                if settings == self._settings:
                    return False
                self._settings, self._owners = settings, known_owners(settings)
                self._changed = True
        log.info("The settings have changed")
        self._news.set()
        return True

    # -- the ledger

    def _jobs(self) -> JobLedger:
        """Return the ledger; the first call also starts work on its unfinished jobs."""
        with self._lock:
            if self._ledger is None:
                ledger = self._opener.ledger(self._settings)
                self._ledger = JobLedger(ledger.store)
                # Keep the directory where it was opened first: the managers' locks are there.
                state = replace(self._settings.state, dir=ledger.path.parent)
                self._settings = replace(self._settings, state=state)
            if self._housekeeper is None and not self._stopping.is_set():
                self._housekeeper = start(self._housekeeping, "housekeeping")
            return self._ledger

    def _wait_for_fetch(self, jobs: JobLedger, job: JobRow) -> None:
        """Wait until the process that fetches the job's outputs has stopped, or is gone."""
        lock = AccountLock(state_dir(self._settings), job.project_url, job.account)
        deadline = time.monotonic() + CANCEL_TIMEOUT
        while lock.held_elsewhere() and not self._stopping.is_set():
            row = jobs.job(job.id, described=False)
            if row is None or not row.writing:
                return
            if time.monotonic() > deadline:
                log.error("Job %d is cancelled, but its outputs may still be written", job.id)
                return
            self._stopping.wait(_CHECK_INTERVAL)

    # -- what goes on in the background

    def _housekeeping(self) -> None:
        """Write notes into the ledger, and give every owner a manager with the current settings."""
        next_check = -math.inf
        while not self._stopping.is_set():
            jobs = self._ledger
            assert jobs is not None  # noqa: S101  (the thread is started after it is opened)
            is_time = time.monotonic() >= next_check
            try:
                if is_time:
                    # Set this first, so that a failure below is not retried at once.
                    every = min(INTERVAL, check_interval(self._settings.htcondor.lease))
                    next_check = time.monotonic() + every
                    self._write_all(jobs)
                else:
                    self._write_urgent(jobs)
                self._reload_settings(SETTINGS_INTERVAL)
                if is_time or self._changed:
                    self._changed = False
                    self._start_managers(jobs)
                    self._problems.refresh(jobs, time.time())
            except LedgerError as error:
                log.error("%s", error)
            except Exception:  # the thread has to live on
                log.exception("background work failed")
            left = next_check - time.monotonic()
            self._news.wait(max(0.0, min(left, max(SETTINGS_INTERVAL, _CHECK_INTERVAL))))
            self._news.clear()

    def _write_all(self, jobs: JobLedger) -> None:
        try:
            self._write_urgent(jobs)
            with self._notes_lock:
                polled, self._polled = self._polled, {}
            jobs.htcondor_polled(polled)
        except LedgerError as error:
            log.error("%s", error)

    def _write_urgent(self, jobs: JobLedger) -> None:
        """Do the cancels that failed when HTCondor asked; write down what it was told."""
        with self._notes_lock:
            cancels, reported = set(self._cancels), set(self._reported)
        for job_id in cancels:
            self._cancel(jobs, job_id)
            with self._notes_lock:
                self._cancels.discard(job_id)
        if reported:
            jobs.end_reported(reported)
            with self._notes_lock:
                self._reported -= reported

    def _start_managers(self, jobs: JobLedger) -> None:
        for url, account, name in jobs.owners():
            owner = owner_key(url, account)
            project = self._owners.get(owner)
            if project is None:
                self._problems.hold_unknown(jobs, self._settings, (url, account, name), time.time())
                continue
            jobs.set_unknown(url, account, False)
            if trouble := self._wake(owner, project):
                jobs.project_trouble(url, account, trouble)

    def _wake(self, owner: Owner, project: ProjectSettings) -> str:
        """Have a manager look at the owner's jobs; return why there is none, empty if there is."""
        try:
            manager = self._manager(owner, project)
        except (GahpError, RuntimeError) as error:  # the jobs wait; others have theirs
            log.warning("Jobs for %s have to wait: %s", project.url, error)
            return str(error)
        if manager is not None:
            manager.wake()
        return ""

    def _manager(self, owner: Owner, project: ProjectSettings) -> AccountManager | None:
        """Return the owner's manager, started if need be; None if this service is being closed.

        A manager that is running goes on with the current settings.
        """
        with self._lock:
            if self._ledger is None or self._stopping.is_set():
                return self._managers.get(owner)
            timeouts = self._settings.timeouts
            timeouts = replace(timeouts, retry=min(timeouts.retry, RETRY_TIME))
            # If several sections are for one account, the first counts.
            chosen = replace(self._settings, timeouts=timeouts), self._owners.get(owner, project)
            manager = self._managers.get(owner)
            if manager is None:
                opened, its = self._opener.open(*chosen), (project.url, owner[1])
                manager = AccountManager(
                    AccountContext(opened, self._ledger, its, chosen[0], self._scopes)
                )
                manager.start()
                self._managers[owner], self._opened[owner] = manager, chosen
            elif chosen != self._opened[owner]:
                self._change(owner, manager, chosen)
            return manager

    def _change(self, owner: Owner, manager: AccountManager, chosen: Chosen) -> None:
        """Give a manager other settings; if they cannot be used, it keeps those that it has."""
        try:
            alike = self._opener.are_alike(chosen, self._opened[owner])
            manager.change(chosen[0], None if alike else self._opener.open(*chosen))
        except GahpError as error:
            log.warning("The previous settings for %s stay in use: %s", owner[0], error)
        else:
            self._opened[owner] = chosen
            log.info("The settings for %s have changed", owner[0])
