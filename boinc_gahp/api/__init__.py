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
"""

import logging

from boinc_gahp.api.app import App
from boinc_gahp.api.batch import Batch, Counts
from boinc_gahp.api.fetching import Fetched, FetchedZip, JobFailure
from boinc_gahp.api.job import BatchJob
from boinc_gahp.api.project import Project
from boinc_gahp.api.session import Session
from boinc_gahp.api.submission import Plan
from boinc_gahp.api.types import (
    Failure,
    File,
    InlineFile,
    Job,
    JobState,
    LocalFile,
    OnProgress,
    Parameters,
    Progress,
    RemoteFile,
    StagedFile,
)
from boinc_gahp.api.watching import Forecast, Poll
from boinc_gahp.rpc import BatchState

__all__ = [
    "App",
    "Batch",
    "BatchJob",
    "BatchState",
    "Counts",
    "Failure",
    "Fetched",
    "FetchedZip",
    "File",
    "Forecast",
    "InlineFile",
    "Job",
    "JobFailure",
    "JobState",
    "LocalFile",
    "OnProgress",
    "Parameters",
    "Plan",
    "Poll",
    "Progress",
    "Project",
    "RemoteFile",
    "Session",
    "StagedFile",
]

# The project's PHP prints many warnings that do not interest the user of a notebook. A program that
# wants them, or wants to see retries, sets up logging.
logging.getLogger("boinc_gahp").addHandler(logging.NullHandler())
