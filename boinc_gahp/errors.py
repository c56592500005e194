"""The tree of exceptions: the type tells who must act, the text tells what to do.

::

    GahpError
    ├── BadRequest           whoever wrote the line (or called the API): its form is wrong
    ├── ConfigError          the submit node's admin, or the user who keeps a settings file
    ├── JobRefused           the job's owner: the project would mangle this job or choke on it
    │   └── BatchTooLarge    the submitter: too many jobs for one request
    ├── StagingError         the job's owner: an input file cannot be read, or cannot be sent
    ├── OutputError          the job's owner: an output cannot be delivered
    ├── BatchConflict        the submitter: the batch's name means something else on the project
    │   ├── BatchGivenUp     another name: this one's batch is being aborted
    │   └── JobsNotListed    the project's admin: jobs that were taken do not exist
    ├── WrongBatch           whoever named a batch: what the name stands for has to be made clear
    │   ├── NoSuchBatch      ... no batch of the account has this name or id
    │   ├── AmbiguousBatch   ... several have
    │   └── ForeignBatch     ... it is another account's
    ├── NoSuchJob            whoever named a job: the batch has none of this name or id
    ├── LedgerError          the submit node's admin: the state directory
    └── RpcError             has .rpc and .host
        ├── TransportError   the network, or the project's web server
        ├── ProtocolError    the project's admin: what answered is no BOINC reply
        └── ProjectError     the project said no; has .number, .words and .named
            ├── ProjectDown       wait: web stopped (-183), database down (-138)
            ├── DatabaseTrouble   wait: its database could not do it just now
            ├── QuotaExceeded     wait: the account has as many unfinished jobs as it may have
            ├── PermissionDenied  the account, or its rights on the project
            │   ├── BadAuthenticator  ... no account has this authenticator
            │   ├── NoSubmitAccess    ... it may not submit (to this app)
            │   ├── NoFileAccess      ... it may not send files, so it may not submit at all
            │   └── NotOwner          ... the batch, or the job's batch, is another account's
            ├── NotFound          a name or id that the project does not know
            │   ├── AppNotFound, BatchNotFound, JobNotFound
            │   ├── OutputNotFound    ... an instance uploaded no output of this number
            │   └── OutputGone        ... it did, and the project has deleted it
            ├── DuplicateJob      a job of this name exists, somewhere on the project
            ├── BatchSubmitted    the batch has been submitted already
            ├── InputGone         an input file is not on the project (any more)
            ├── RequestTooLarge   PHP did not take the request for its size
            ├── TooManyFiles      PHP takes fewer files in a request
            ├── FileTooLarge      PHP takes no file of this size
            └── FileDiffers       the project has a file of this name with other contents

``str()`` of any of them is one line for the person who must act: what was asked of whom, what came
back, what to do. None of them ever holds an authenticator. :meth:`GahpError.told` has
the class's code behind it; that is what is shown by commands, in HoldReason and on Result Lines.
"""

from __future__ import annotations

from typing import ClassVar

#: The project's words; a gridmanager takes everything after them as the name (``gahp.rst``,
#: "BOINC_QUERY_BATCHES").
NO_BATCH_NAMED = "no batch named "


class GahpError(Exception):
    """Anything that boinc_gahp reports on purpose.

    Attributes:
        code: a name for the class that stays when texts and classes are renamed. Each class has its
            own, and each of them an entry in ``docs/troubleshooting.rst``.
    """

    code: ClassVar[str] = "BG-GAHP"

    def told(self, text: str | None = None) -> str:
        """Return what people are told: the text, or one that is made of it, and the code."""
        return f"{self if text is None else text} [{self.code}]"


class BadRequest(GahpError):
    """The request's form is wrong: on pipes an ``E`` line, on the console this text."""

    code = "BG-BAD-REQUEST"


class ConfigError(GahpError):
    """A setting is missing, wrong or unsafe."""

    code = "BG-CONFIG"


class JobRefused(GahpError):
    """A job that the project would mangle or choke on; nothing was created.

    Attributes:
        job_name: the job, where one is to blame.
    """

    code = "BG-JOB-REFUSED"

    def __init__(self, message: str, *, job_name: str | None = None) -> None:
        super().__init__(message)
        self.job_name = job_name


class BatchTooLarge(JobRefused):
    """A batch whose request is larger than the project takes; smaller ones may go.

    Attributes:
        nbytes: the request's size.
    """

    code = "BG-BATCH-TOO-LARGE"

    def __init__(self, message: str, *, nbytes: int) -> None:
        super().__init__(message)
        self.nbytes = nbytes


class StagingError(GahpError):
    """An input file cannot be read, changed while it was sent, or is too large for the project.

    Attributes:
        path: the file, where one is to blame.
        errno: what the operating system said about it, 0 if it said nothing.
    """

    code = "BG-STAGING"

    def __init__(self, message: str, *, path: str | None = None, errno: int = 0) -> None:
        super().__init__(message)
        self.path = path
        self.errno = errno


class OutputError(GahpError):
    """An output is missing, damaged, or cannot be written where it was asked for."""

    code = "BG-OUTPUT"


class BatchConflict(GahpError):
    """The batch's name is taken, or the batch is in a state that excludes what was asked."""

    code = "BG-BATCH-CONFLICT"


class BatchGivenUp(BatchConflict):
    """An error was answered for the batch before, and an abort of it is owed."""

    code = "BG-BATCH-GIVEN-UP"


class JobsNotListed(BatchConflict):
    """The project has taken a batch's jobs without an error, and does not list them."""

    code = "BG-JOBS-NOT-LISTED"


class WrongBatch(GahpError):
    """What was said does not stand for one batch of this account.

    Attributes:
        said: what the batch was called.
    """

    code = "BG-WRONG-BATCH"

    def __init__(self, message: str, *, said: str) -> None:
        super().__init__(message)
        self.said = said


class NoSuchBatch(WrongBatch):
    """No batch of this account has this name or id."""

    code = "BG-NO-SUCH-BATCH"


class AmbiguousBatch(WrongBatch):
    """Several batches are called so, or one has as its id what another has as its name."""

    code = "BG-AMBIGUOUS-BATCH"


class ForeignBatch(WrongBatch):
    """The batch is another account's."""

    code = "BG-FOREIGN-BATCH"


class NoSuchJob(GahpError):
    """A batch has no job of this name or id."""

    code = "BG-NO-SUCH-JOB"


class LedgerError(GahpError):
    """The ledger cannot be opened or written."""

    code = "BG-LEDGER"


class RpcError(GahpError):
    """An exchange with a project went wrong.

    Attributes:
        rpc: the RPC's name, for example ``create_batch``.
        host: the project's host (and port, where it is not the scheme's own).
        may_have_happened: whether the project may have carried the request out all the same.
    """

    code = "BG-RPC"

    def __init__(
        self, message: str, *, rpc: str, host: str, may_have_happened: bool = True
    ) -> None:
        super().__init__(message)
        self.rpc = rpc
        self.host = host
        self.may_have_happened = may_have_happened


class TransportError(RpcError):
    """No answer: connection refused, reset, timed out, certificate, redirect, HTTP 4xx or 5xx.

    Attributes:
        status: the HTTP status, where there was one.
        permanent: whether asking again cannot help until someone changes something.
    """

    code = "BG-TRANSPORT"

    def __init__(
        self,
        message: str,
        *,
        rpc: str,
        host: str,
        may_have_happened: bool = True,
        status: int | None = None,
        permanent: bool = False,
    ) -> None:
        super().__init__(message, rpc=rpc, host=host, may_have_happened=may_have_happened)
        self.status = status
        self.permanent = permanent


class ProtocolError(RpcError):
    """An answer that is no complete reply: HTML, empty, cut off, a PHP fatal error.

    Attributes:
        php_fatal: whether the project's PHP died of this request, as it will do again
            (``web-rpcs.rst``, "query_completed_job" and "Files").
        cut: whether the reply ended early or was empty: the next one may be whole.
    """

    code = "BG-PROTOCOL"

    def __init__(
        self,
        message: str,
        *,
        rpc: str,
        host: str,
        may_have_happened: bool = True,
        php_fatal: bool = False,
        cut: bool = False,
    ) -> None:
        super().__init__(message, rpc=rpc, host=host, may_have_happened=may_have_happened)
        self.php_fatal = php_fatal
        self.cut = cut


class ProjectError(RpcError):
    """A complete reply that says no.

    Attributes:
        number: the project's ``error_num`` (nearly always -1).
        words: the project's ``error_msg``, whole.
        named: what the words name, as the project wrote it; "" where they name nothing. The class
            tells what it is: a batch, a job, a file, or for TooManyFiles how many there may be.
    """

    code = "BG-PROJECT"

    def __init__(
        self,
        message: str,
        *,
        rpc: str,
        host: str,
        number: int,
        words: str,
        named: str = "",
        may_have_happened: bool = False,
    ) -> None:
        super().__init__(message, rpc=rpc, host=host, may_have_happened=may_have_happened)
        self.number = number
        self.words = words
        self.named = named


class ProjectDown(ProjectError):
    """The project is stopped for maintenance (-183) or its database is down (-138)."""

    code = "BG-PROJECT-DOWN"


class DatabaseTrouble(ProjectError):
    """The project's database could not do it just now: a deadlock, a full disk, a lost server."""

    code = "BG-DATABASE-TROUBLE"


class QuotaExceeded(ProjectError):
    """The account has as many unfinished jobs as it may have."""

    code = "BG-QUOTA-EXCEEDED"


class PermissionDenied(ProjectError):
    """The account is unknown, or lacks the right that this request needs."""

    code = "BG-PERMISSION-DENIED"


class BadAuthenticator(PermissionDenied):
    """No account of the project has this authenticator."""

    code = "BG-BAD-AUTHENTICATOR"


class NoSubmitAccess(PermissionDenied):
    """The account may not submit: to this app, or at all."""

    code = "BG-NO-SUBMIT-ACCESS"


class NoFileAccess(PermissionDenied):
    """The account may not send files, and so may not submit at all."""

    code = "BG-NO-FILE-ACCESS"


class NotOwner(PermissionDenied):
    """The batch, or the job's batch, belongs to another account."""

    code = "BG-NOT-OWNER"


class NotFound(ProjectError):
    """The project does not know the batch, job, app or file that was named."""

    code = "BG-NOT-FOUND"


class AppNotFound(NotFound):
    """The project has no such app."""

    code = "BG-APP-NOT-FOUND"


class BatchNotFound(NotFound):
    """The project has no such batch."""

    code = "BG-BATCH-NOT-FOUND"


class JobNotFound(NotFound):
    """The project has no such job."""

    code = "BG-JOB-NOT-FOUND"


class OutputNotFound(NotFound):
    """The instance uploaded no output of this number."""

    code = "BG-OUTPUT-NOT-FOUND"


class OutputGone(NotFound):
    """The instance uploaded this output, and the project has deleted it; ``named``: its path."""

    code = "BG-OUTPUT-GONE"


class DuplicateJob(ProjectError):
    """A job of this name exists already, in this batch or in another one."""

    code = "BG-DUPLICATE-JOB"


class BatchSubmitted(ProjectError):
    """The batch has been submitted already: jobs cannot be added to it."""

    code = "BG-BATCH-SUBMITTED"


class InputGone(ProjectError):
    """An input file is not on the project (any more); ``named``: its physical name."""

    code = "BG-INPUT-GONE"


class RequestTooLarge(ProjectError):
    """PHP did not take the request for its size."""

    code = "BG-REQUEST-TOO-LARGE"


class TooManyFiles(ProjectError):
    """PHP takes fewer files in one request; ``named``: how many."""

    code = "BG-TOO-MANY-FILES"


class FileTooLarge(ProjectError):
    """PHP takes no file of this size; ``named``: the file's physical name."""

    code = "BG-FILE-TOO-LARGE"


class FileDiffers(ProjectError):
    """The project has a file of this physical name with other contents."""

    code = "BG-FILE-DIFFERS"
