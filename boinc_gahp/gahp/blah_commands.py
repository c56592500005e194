"""The BLAH_* commands, for gridmanagers with the grid type "batch" (``gridmanager-batch.rst``).

Each command has its request, and its row in :data:`TABLE`.
"""

from __future__ import annotations

from dataclasses import dataclass

from boinc_gahp.gahp import results
from boinc_gahp.gahp.command import REQUEST_ID, AsyncRequest, Command
from boinc_gahp.gahp.grammar import Optional, Rest, Text


class BlahRequest(AsyncRequest):
    """A request of the gridmanagers of HTCondor 10 and later (``gridmanager-batch.rst``)."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Ping(BlahRequest):
    """BLAH_PING; ``batch_type`` is the word after ``batch`` in grid_resource, and ignored."""

    command = "BLAH_PING"
    batch_type: str | None = None


@dataclass(frozen=True, slots=True)
class JobSubmit(BlahRequest):
    """BLAH_JOB_SUBMIT; ``ad`` is the job's ClassAd as text."""

    command = "BLAH_JOB_SUBMIT"
    ad: str


@dataclass(frozen=True, slots=True)
class JobStatus(BlahRequest):
    """BLAH_JOB_STATUS; ``job_id`` is from the result of BLAH_JOB_SUBMIT."""

    command = "BLAH_JOB_STATUS"
    job_id: str


@dataclass(frozen=True, slots=True)
class JobCancel(BlahRequest):
    """BLAH_JOB_CANCEL."""

    command = "BLAH_JOB_CANCEL"
    job_id: str


@dataclass(frozen=True, slots=True)
class JobRefreshProxy(BlahRequest):
    """BLAH_JOB_REFRESH_PROXY; ``proxy`` is the path of an X.509 proxy."""

    command = "BLAH_JOB_REFRESH_PROXY"
    job_id: str
    proxy: str | None = None


_JOB_ID = Text("job_id", "the job's id, from the result of BLAH_JOB_SUBMIT")

TABLE: tuple[Command, ...] = (
    Command(
        JobCancel,
        (REQUEST_ID, _JOB_ID),
        pool="cancel",
        returns="0 NULL",
        summary="abort and delete a job of HTCondor",
        form=results.blah(),
        help="""\
After the answer, the job's files are no longer touched. The abort is recorded, and sent as soon as
the project answers, if necessary by a later boinc_gahp. An unknown id is not an error.
Example: BLAH_JOB_CANCEL 9 boinc/0a1b2c3d.7""",
    ),
    Command(
        JobRefreshProxy,
        (REQUEST_ID, _JOB_ID, Optional((Text("proxy", "path of an X.509 proxy"),), "ignored")),
        pool="status",
        returns="0 NULL",
        summary="do nothing: volunteers get no proxies",
        form=results.blah(),
        help="""\
HTCondor sends it for jobs with an x509userproxy.
Example: BLAH_JOB_REFRESH_PROXY 8 boinc/0a1b2c3d.7 /tmp/x509up_u1000""",
    ),
    Command(
        JobStatus,
        (REQUEST_ID, _JOB_ID),
        pool="status",
        returns="0 NULL status ad",
        summary="get the status of a job of HTCondor",
        form=results.blah("0", results.NO_AD),
        help="""\
The status is 1 (idle), 2 (running), 3 (removed), 4 (completed), 5 (held) or 7 (suspended: the
ledger cannot be used now). For 4 the ad has ExitCode; for 5 it has HoldReason, HoldReasonCode and
HoldReasonSubCode. The answer comes from the ledger; boinc_gahp asks the project in the background.
A job is completed when all of its output files are in place.
Example: BLAH_JOB_STATUS 5 boinc/0a1b2c3d.7""",
    ),
    Command(
        JobSubmit,
        (REQUEST_ID, Rest("ad", 'the job as a ClassAd: [ BoincApp = "..."; Iwd = "..."; ... ]')),
        pool="accept",
        returns="0 NULL job_id",
        summary="accept a job from HTCondor; submit it later in a batch",
        form=results.blah("NULL"),
        help="""\
The result is the job's id, once the job is in the ledger. A little later the job is submitted to
the project, in a batch with similar jobs. If something is wrong with it then, BLAH_JOB_STATUS says
so. JobDirectory is any text that identifies the job: the same JobDirectory means the same job,
until the job is cancelled. BoincApp is the app; without it Cmd runs in a container of the image
ContainerImage, if the settings name an app for that. Iwd is the directory of the files: those of
TransferInput, and those of TransferOutput (default: all outputs), Out and Err. Arguments,
TransferOutputRemaps, BoincProject, BoincRscFpopsEst and others are as in a submit file.
HTCondor sends such an ad for each job with grid_resource = batch boinc.
In an ad, write a backslash before each backslash; spaces need none.
Example, all in one line:
BLAH_JOB_SUBMIT 3 [BoincApp="uppercase"; Iwd="/home/me"; TransferInput="in"; JobDirectory="a"]""",
    ),
    Command(
        Ping,
        (
            REQUEST_ID,
            Optional((Text("batch_type", "HTCondor's name for this batch system"),), "ignored"),
        ),
        pool="status",
        returns="0 NULL",
        summary="check whether jobs from HTCondor can be accepted",
        form=results.blah(),
        help="""\
It fails only if this program cannot accept jobs: no settings, no authenticator, no ledger.
HTCondor does not see this failure, because it would keep all jobs idle; instead each job is held,
with the reason. It does not matter whether a project answers: jobs wait until it does.
Example: BLAH_PING 2 boinc""",
    ),
)
