"""Remote job submission: the Python API for people and programs.

::

    from boinc_gahp import Job, Project

    with Project("https://boinc.example.edu/test/", authenticator) as project:
        jobs = [Job(args=["--rate", str(rate)], inputs={"in": "data.txt"}) for rate in range(10)]
        batch = project.submit("logistic", jobs, name="sweep", progress=print)
        batch.wait(progress=print)
        batch.fetch("results")
        for failure in batch.failures():
            print(failure)
        batch.retire()

Its parts, in the order in which a batch meets them:

==============  ===================================================================================
session         the project, the account and the settings, which most functions take
project, batch  the handles; what a batch keeps is known_batch's, and job is one of its jobs
app             what an app's templates say
table, rows     jobs from a table: of Python, and of a file; row_csv and row_json read the files
row_jobs        a row as a job; row_values checks its cells, patterns fills placeholders
files           input files and arguments as text
programs        commands as jobs in containers, with program_files from their words
request         jobs as a request to submit; splitting divides what is too large
submission      submits, plans and estimates
manifest        what was submitted; manifest_files keeps it on this machine
comparing       whether a batch that is there has the same jobs, and the difference
finding         the batch or the job of a name or id
control         the lease, abort, retire
watching        asks until batches are over; counting and forecast make numbers of the answers
progress        shows it on terminals and in notebooks
fetching        outputs, with fetching_batch's threads, into folders or zips
job_templates   which outputs jobs have; program_folders are for those of programs
records         a row for each job, for DataFrames and for jobs_csv
failures, logs  what the project tells about single jobs; reasons has each reason once
runs, mapping   from rows to futures over the jobs of an app, or of a program
futures         a future for each job; gathering sets their results as the jobs end
naming          a batch's name that is made from its contents
endings         programs that ended badly, though for the project their jobs are done
family          a batch and its retries, and which of them count; retrying sends them
==============  ===================================================================================
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from boinc_gahp.lazy import exports
from boinc_gahp.states import BatchState, JobState

if TYPE_CHECKING:
    from boinc_gahp.api.app import App as App
    from boinc_gahp.api.batch import Batch as Batch
    from boinc_gahp.api.comparing import is_final as is_final
    from boinc_gahp.api.counting import Counts as Counts
    from boinc_gahp.api.endings import (
        ended_badly as ended_badly,
        may_have_ended_badly as may_have_ended_badly,
    )
    from boinc_gahp.api.failures import JobFailure as JobFailure, save_failure as save_failure
    from boinc_gahp.api.family import (
        Standing as Standing,
        parent_of as parent_of,
        standing_of as standing_of,
    )
    from boinc_gahp.api.fetching import Fetched as Fetched
    from boinc_gahp.api.fetching_batch import Jobs as Jobs, jobs_of as jobs_of
    from boinc_gahp.api.files import split_named as split_named
    from boinc_gahp.api.finding import find_batch as find_batch, of_account as of_account
    from boinc_gahp.api.folders import folder_name as folder_name
    from boinc_gahp.api.functions import Function as Function
    from boinc_gahp.api.futures import (
        JobFuture as JobFuture,
        JobFutures as JobFutures,
        JobResult as JobResult,
    )
    from boinc_gahp.api.job import BatchJob as BatchJob
    from boinc_gahp.api.logs import JobLog as JobLog, logs_of as logs_of, page_of as page_of
    from boinc_gahp.api.manifest import (
        Lineage as Lineage,
        Manifest as Manifest,
        SubmittedInput as SubmittedInput,
        SubmittedJob as SubmittedJob,
    )
    from boinc_gahp.api.manifest_files import (
        Manifests as Manifests,
        SubmittedBatch as SubmittedBatch,
        submitted_batches as submitted_batches,
    )
    from boinc_gahp.api.patterns import Patterns as Patterns
    from boinc_gahp.api.programs import (
        ProgramBatch as ProgramBatch,
        Programs as Programs,
        made_programs as made_programs,
        program_batch as program_batch,
    )
    from boinc_gahp.api.progress import (
        StepView as StepView,
        counts_words as counts_words,
        longest_words as longest_words,
        rest_words as rest_words,
        state_words as state_words,
    )
    from boinc_gahp.api.project import Project as Project
    from boinc_gahp.api.reasons import Reason as Reason, reasons_of as reasons_of
    from boinc_gahp.api.request import (
        Options as Options,
        job_names as job_names,
        new_batch_name as new_batch_name,
        similar_names as similar_names,
    )
    from boinc_gahp.api.retrying import RetryPlan as RetryPlan, plan_retry as plan_retry
    from boinc_gahp.api.row_values import WrongRow as WrongRow
    from boinc_gahp.api.rows import read_rows as read_rows
    from boinc_gahp.api.session import Session as Session
    from boinc_gahp.api.splitting import split as split
    from boinc_gahp.api.submission import (
        Plan as Plan,
        drop_begun as drop_begun,
    )
    from boinc_gahp.api.table import jobs_from as jobs_from
    from boinc_gahp.api.types import (
        Failure as Failure,
        File as File,
        InlineFile as InlineFile,
        Job as Job,
        JobState as JobState,
        LocalFile as LocalFile,
        OnProgress as OnProgress,
        Parameters as Parameters,
        Progress as Progress,
        RemoteFile as RemoteFile,
        StagedFile as StagedFile,
    )
    from boinc_gahp.api.watching import Poll as Poll, watch as watch

#: The documented names; the others are for the command line.
__all__ = [
    "App",
    "Batch",
    "BatchJob",
    "BatchState",
    "Counts",
    "Failure",
    "Fetched",
    "File",
    "Function",
    "InlineFile",
    "Job",
    "JobFailure",
    "JobFuture",
    "JobFutures",
    "JobLog",
    "JobResult",
    "JobState",
    "LocalFile",
    "OnProgress",
    "Parameters",
    "Plan",
    "Poll",
    "Progress",
    "Project",
    "Reason",
    "RemoteFile",
    "Session",
    "StagedFile",
    "SubmittedInput",
    "SubmittedJob",
    "WrongRow",
    "jobs_from",
]

__getattr__, __dir__ = exports(
    __name__,
    {
        "app": ["App"],
        "batch": ["Batch"],
        "comparing": ["is_final"],
        "counting": ["Counts"],
        "endings": ["ended_badly", "may_have_ended_badly"],
        "failures": ["JobFailure", "save_failure"],
        "fetching": ["Fetched"],
        "fetching_batch": ["Jobs", "jobs_of"],
        "files": ["split_named"],
        "finding": ["find_batch", "of_account"],
        "folders": ["folder_name"],
        "functions": ["Function"],
        "futures": ["JobFuture", "JobFutures", "JobResult"],
        "job": ["BatchJob"],
        "logs": ["JobLog", "logs_of", "page_of"],
        "progress": ["StepView", "counts_words", "longest_words", "rest_words", "state_words"],
        "manifest": ["Lineage", "Manifest", "SubmittedInput", "SubmittedJob"],
        "manifest_files": ["Manifests", "SubmittedBatch", "submitted_batches"],
        "patterns": ["Patterns"],
        "programs": [
            "ProgramBatch",
            "Programs",
            "made_programs",
            "program_batch",
        ],
        "project": ["Project"],
        "reasons": ["Reason", "reasons_of"],
        "request": ["Options", "job_names", "new_batch_name", "similar_names"],
        "family": ["Standing", "parent_of", "standing_of"],
        "retrying": ["RetryPlan", "plan_retry"],
        "row_values": ["WrongRow"],
        "rows": ["read_rows"],
        "session": ["Session"],
        "splitting": ["split"],
        "submission": ["Plan", "drop_begun"],
        "table": ["jobs_from"],
        "types": [
            "Failure",
            "File",
            "InlineFile",
            "Job",
            "JobState",
            "LocalFile",
            "OnProgress",
            "Parameters",
            "Progress",
            "RemoteFile",
            "StagedFile",
        ],
        "watching": ["Poll", "watch"],
    },
)

# The project's PHP prints many warnings that do not interest the user of a notebook. A program that
# wants them, or wants to see retries, sets up logging.
logging.getLogger("boinc_gahp").addHandler(logging.NullHandler())
