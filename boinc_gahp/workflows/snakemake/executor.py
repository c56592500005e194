"""Snakemake's executor for volunteers' computers: ``snakemake --executor boinc``.

Snakemake hands out the jobs that are ready. Those that it has handed out since the last look, and
that have a rule and an image in common, become one batch. Snakemake remembers the batch and the
job in it before the batch is submitted (its external job id). So when Snakemake is killed and runs
again, the job is picked up on the project. When a job is done, its outputs are put where the
workflow expects them, as if the volunteer's computer shared this file system.
"""

from __future__ import annotations

import secrets
import shutil
import threading
from collections import defaultdict
from concurrent.futures import CancelledError
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

from boinc_gahp import Job
from boinc_gahp.api.futures.job_futures import JobFuture, JobFutures, JobResult
from boinc_gahp.api.programs import program_batch
from boinc_gahp.api.project import Project
from boinc_gahp.errors import GahpError, NoSuchBatch
from boinc_gahp.text import printable
from boinc_gahp.workflows.snakemake.options import ExecutorSettings
from boinc_gahp.workflows.snakemake.rule_jobs import (
    COMMAND,
    RuleJob,
    check_rules,
    members,
    read_job,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from boinc_gahp.api import batch

__all__ = ["Executor"]

#: Where the outputs of jobs wait to be moved, below the working directory.
_DIRECTORY = Path(".snakemake", "boinc")
#: The most characters of a rule's name in a batch's name.
_LONGEST = 40
#: How many lines of a failed job's stderr are shown.
_LINES = 10


class _Place(NamedTuple):
    """Where a job is on the project: its batch, its name, and what it computes (a digest)."""

    batch: str
    job: str
    digest: str

    @classmethod
    def read(cls, text: str | None) -> _Place | None:
        """Return the place that an external job id tells; None: it is none."""
        parts = (text or "").split("/")
        return cls(*parts) if len(parts) == 3 else None

    def __str__(self) -> str:
        return "/".join(self)


class _Sent:
    """A job of Snakemake that was handed out, and what became of it."""

    def __init__(self, info: Any, job: RuleJob) -> None:
        self.info = info
        self.job = job
        self.place: _Place | None = None
        self.future: JobFuture[JobResult] | None = None


class Executor(RemoteExecutor):
    """Runs the jobs of a workflow on volunteers' computers."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        # Snakemake's class starts the thread that looks at the jobs before it calls __post_init__.
        self._sent: dict[int, _Sent] = {}
        #: Batches that have names, and are not submitted yet.
        self._made: dict[str, list[_Sent]] = {}
        self._batches: dict[str, JobFutures[JobResult]] = {}
        #: Batches with jobs that failed here; for the project they may be done.
        self._failed: set[str] = set()
        # A workflow is cancelled by another thread than the one that submits.
        self._lock = threading.Lock()
        self._cancelled = False
        super().__init__(workflow, logger)

    def __post_init__(self) -> None:
        """Refuse workflows that cannot run there; Snakemake calls this before any job."""
        self._settings: ExecutorSettings = self.workflow.executor_settings or ExecutorSettings()
        rules = {job.rule for job in self.dag.needrun_jobs() if not job.is_local}
        check_rules(sorted(rules, key=lambda rule: str(rule.name)))
        self._project = Project.from_settings(self._settings.project)

    def run_job(self, job: Any) -> None:
        """Take a job; it is submitted with the next look at the jobs."""
        sent = read_job(job, self.workflow.deployment_settings.deployment_method)
        if not self._image(sent):
            raise WorkflowError(
                f"rule {sent.rule} names no image: write container: "
                '"docker://python:3.12-slim" into the workflow, or give --boinc-image NAME, or set '
                "container_image in boinc_gahp's settings"
            )
        for each in members(job):
            self.workflow.async_run(each.check_protected_output())
            self.workflow.async_run(each.remove_existing_output())
        info = SubmittedJobInfo(job)
        with self._lock:
            self._sent[id(info)] = _Sent(info, sent)
        self.report_job_submission(info, register_job=False)

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncGenerator[Any, None]:
        """Submit jobs that were handed out, and report those that are over; yield the others."""
        with self._lock:
            self._submit([self._sent[id(info)] for info in active_jobs])
        for info in active_jobs:
            sent = self._sent.get(id(info))
            if sent is None:
                continue
            if sent.future is None or not sent.future.done():
                yield info
            else:
                self._end(sent, sent.future)

    def cancel_jobs(self, active_jobs: list[Any]) -> None:  # noqa: ARG002
        """Abort all jobs that are not over."""
        # Snakemake leaves out those that are looked at just now.
        with self._lock:
            self._cancelled = True
            names = defaultdict(list)
            for sent in self._sent.values():
                if sent.place is not None and sent.future is not None and not sent.future.done():
                    names[sent.place.batch].append(sent.place.job)
            for batch, jobs in names.items():
                try:
                    self._batches[batch].batch.abort(jobs)
                except GahpError as error:
                    self.logger.error(f"batch {batch} could not be aborted: {error}")

    def shutdown(self) -> None:
        """Let the project delete the files of batches whose jobs are all done and brought."""
        super().shutdown()
        if not self._cancelled:
            left = {sent.place.batch for sent in self._sent.values() if sent.place is not None}
            for name in self._batches.keys() - self._failed - left:
                self._retire(self._batches[name])
        self._project.close()

    def _image(self, job: RuleJob) -> str:
        default = self._project.session.project_settings.container_image
        return job.image or self._settings.image or default or ""

    # -- submitting

    def _submit(self, handed_out: Iterable[_Sent]) -> None:
        new = [sent for sent in handed_out if sent.place is None]
        if self._cancelled:
            return
        try:
            for name, several in self._earlier(new).items():
                self._pick_up(name, several)
            groups = defaultdict(list)
            for sent in new:
                if sent.place is None:
                    groups[sent.job.like].append(sent)
            for alike in groups.values():
                self._name(alike)
            for name, named in list(self._made.items()):
                self._send(name, named)
        except GahpError as error:
            if error.is_final:
                raise
            self.logger.warning(f"the jobs will be submitted later: {error}")

    def _earlier(self, new: Iterable[_Sent]) -> dict[str, list[tuple[_Sent, _Place]]]:
        """Return the jobs that an earlier run has submitted, and their places, by batches."""
        found = defaultdict(list)
        for sent in new:
            # Those that Snakemake keeps of unfinished jobs, also with --rerun-incomplete.
            ids = self.workflow.persistence.external_jobids(sent.info.job)
            for place in map(_Place.read, ids):
                if place is not None and place.digest == sent.job.digest:
                    found[place.batch].append((sent, place))
                    break
        return found

    def _pick_up(self, name: str, several: Sequence[tuple[_Sent, _Place]]) -> None:
        """Wait for jobs that an earlier run has submitted, if the project has them."""
        try:
            batch = self._project.batch(name)
        except NoSuchBatch:
            return
        there = {job.name for job in batch}
        several = [(sent, place) for sent, place in several if place.job in there]
        for sent, place in several:
            sent.place = place
            sent.info.external_jobid = str(place)
        self._wait_for(batch, [sent for sent, _ in several])
        self.logger.info(f"{len(several)} jobs are in batch {name} already.")

    def _name(self, several: list[_Sent]) -> None:
        """Give a batch and its jobs names, and have Snakemake remember them."""
        rule = several[0].job.rule[:_LONGEST]
        name = f"snakemake-{rule}-{secrets.token_hex(4)}"
        for number, sent in enumerate(several):
            sent.place = _Place(name, f"{name}_{number}", sent.job.digest)
            sent.info.external_jobid = str(sent.place)
            sent.info.job.register(external_jobid=str(sent.place))
        self._made[name] = several

    def _send(self, name: str, several: list[_Sent]) -> None:
        like = several[0].job
        try:
            made = program_batch(
                self._project.session,
                COMMAND,
                image=self._image(like),
                rows=[
                    Job(
                        args=sent.job.words,
                        inputs={path: path for path in sent.job.inputs},
                        name=sent.place.job if sent.place else None,
                        memory=sent.job.memory,
                        disk=sent.job.disk,
                        fpops=sent.job.fpops,
                    )
                    for sent in several
                ],
                outputs=like.output_names,
                environment={**like.environment, **self.envvars()},
                network=self._settings.network,
                cpus=like.threads,
                app=self._settings.app,
                find_files=False,
                follow_links=self._settings.follow_links,
                name=name,
            )
            batch = self._project.submit(made.app, made.jobs, **made.options)
        except GahpError as error:
            if not error.is_final:
                raise
            del self._made[name]
            for sent in several:
                self._report(sent, str(error))
            return
        del self._made[name]
        self._wait_for(batch, several)
        self.logger.info(f"Batch {name} has {len(several)} jobs. {made.sent_along}")

    def _wait_for(self, batch: batch.Batch, several: Sequence[_Sent]) -> None:
        names = [sent.place.job for sent in several if sent.place is not None]
        directory = _DIRECTORY.absolute() / batch.name
        futures = JobFutures(batch, [(name, {}) for name in names], directory, lambda each: each)
        self._batches[batch.name] = futures
        for sent, future in zip(several, futures, strict=True):
            sent.future = future

    # -- the end

    def _end(self, sent: _Sent, future: JobFuture[JobResult]) -> None:
        """Bring a job's outputs, and report it."""
        name = future.job_name
        try:
            result = future.result()
            # Of a job that failed there may be log files.
            sent.job.bring(result.folder)
        except (GahpError, OSError, CancelledError) as error:
            self._report(sent, str(error) or f"job {name} was aborted")
            return
        if result.failure:
            lines = [printable(line) for line in result.stderr.splitlines()[-_LINES:]]
            shown = "\n    ".join(["; the end of its stderr:", *lines]) if lines else ""
            self._report(sent, f"{result.failure}{shown}\nIts files: {result.folder}")
            return
        shutil.rmtree(result.folder, ignore_errors=True)
        del self._sent[id(sent.info)]
        self.report_job_success(sent.info)

    def _report(self, sent: _Sent, why: str) -> None:
        del self._sent[id(sent.info)]
        if sent.place is not None:
            self._failed.add(sent.place.batch)
        self.report_job_error(sent.info, msg=why)

    def print_job_error(self, job_info: Any, msg: str | None = None, **kwargs: Any) -> None:
        """Log why a job failed, and where it is on the project."""
        if job_info.external_jobid is not None:
            kwargs["external_jobid"] = job_info.external_jobid
        job_info.job.log_error(msg, **kwargs)

    def _retire(self, futures: JobFutures[JobResult]) -> None:
        try:
            batch = futures.batch.refresh()
            if batch.is_over and not batch.nerror_jobs:
                batch.retire()
                shutil.rmtree(futures.directory, ignore_errors=True)
        except GahpError as error:
            self.logger.warning(f"batch {futures.batch.name} could not be retired: {error}")
