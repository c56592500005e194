"""The tree of exceptions: the type tells who must act, the text tells what to do.

::

    GahpError
    ├── BadRequest           the author of the line (or the API's caller): its form is wrong
    ├── ConfigError          the submit node's admin, or the owner of a settings file
    ├── JobRefused           the job's owner: the project would mangle this job or choke on it
    │   ├── BatchTooLarge    the submitter: too many jobs for one request
    │   └── NameInUse        the submitter: a job of another batch has this name
    ├── StagingError         the job's owner: an input file cannot be read, or cannot be sent
    ├── OutputError          the job's owner: an output cannot be delivered
    ├── BatchConflict        the submitter: the batch's name means something else on the project
    │   └── JobsNotListed    the project's admin: accepted jobs do not exist
    ├── WrongBatch           the caller: several batches have this name, or it is another account's
    │   └── NoSuchBatch      ... no batch of the account has this name or id
    ├── NoSuchJob            the caller: the batch, or the ledger, has no job of this name or id
    ├── JobFailed            the job's owner: see why it failed
    │   └── RemoteError      ... the call of a function raised an exception, or has no value
    ├── Stopped              the caller: the work was ended before it was done
    ├── NotKnownHere         the caller: another machine submitted it, and only that one knows
    ├── LedgerError          the submit node's admin: the state directory
    └── RpcError             has .rpc and .host
        ├── TransportError   the network, or the project's web server
        ├── ProtocolError    the project's admin: the answer is not a BOINC reply
        └── ProjectError     the project refused; has .number, .words and .named
            ├── ProjectDown       wait: web stopped (-183), database down (-138)
            ├── DatabaseTrouble   wait: its database failed just now
            ├── QuotaExceeded     wait: the account has as many unfinished jobs as it may have
            ├── PermissionDenied  the account, or its rights on the project
            │   ├── BadAuthenticator  ... no account has this authenticator
            │   ├── NoSubmitAccess    ... it may not submit (to this app)
            │   │   └── NoFileAccess  ... it may not send files, so it may not submit at all
            │   └── NotOwner          ... the batch (or the job's) belongs to another account
            ├── NotFound          a name or id that the project does not know
            │   ├── AppNotFound, BatchNotFound, JobNotFound
            │   └── OutputGone        ... an output was not uploaded, or is deleted
            ├── DuplicateJob      a job of this name exists on the project
            ├── BatchSubmitted    the batch has been submitted already
            ├── InputGone         an input file is not on the project (any more)
            ├── RequestTooLarge   the request is too large, or has too many files, for PHP
            ├── FileTooLarge      the file is too large for PHP
            └── FileDiffers       the project has a file of this name with other contents

``str()`` of an error is one line for the person who must act: the request, the answer, the remedy.
It never contains an authenticator. :meth:`GahpError.with_code` adds the class's code; commands,
HoldReason and Result Lines show that.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self

#: The project's words; a gridmanager reads everything after them as the name (``gahp.rst``,
#: "BOINC_QUERY_BATCHES").
NO_BATCH_NAMED = "no batch named "
#: What an error concerns if the account's requests about other batches fail in the same way, at
#: least those for the same app.
OF_ALL = frozenset({"project", "account", "app"})
#: Errors of the operating system that come from a file server or from this process's limits; the
#: files may be all right.
PASSING = frozenset(
    {
        errno.ESTALE,
        errno.ENOMEM,
        errno.EMFILE,
        errno.ENFILE,
        errno.EAGAIN,
        errno.EINTR,
        errno.ETIMEDOUT,
        errno.ENOTCONN,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EREMOTEIO,
    }
)


class GahpError(Exception):
    """An error that boinc_gahp reports on purpose.

    Attributes:
        code: a name for the class that never changes, even if texts and classes do. Each class has
            its own, with an entry in ``docs/troubleshooting.rst``.
        passes: whether the same may succeed later, though nobody changes anything.
        may_be_running: whether the project may still be doing what was asked for.
        spoils_batch: whether a batch whose submit ended with it never gets the same jobs.
        says_all: whether it comes before anything is made on the project, and the text says what
            to change before the same is asked for again.
        concerns: what every other request fails about in the same way: "project", "account", "app"
            or "batch"; "": only this one does, as far as is known.
    """

    code: ClassVar[str] = "BG-GAHP"
    passes: bool = False
    may_be_running: bool = False
    spoils_batch: ClassVar[bool] = False
    says_all: ClassVar[bool] = False
    concerns: ClassVar[str] = ""

    @property
    def is_final(self) -> bool:
        """Whether the same would fail in the same way, and no part of it is still running."""
        return not (self.passes or self.may_be_running)

    def with_code(self, text: str | None = None) -> str:
        """Return the text for people: ``text`` or the error's own, and the code."""
        return f"{self if text is None else text} [{self.code}]"


class BadRequest(GahpError):
    """A request, an argument or a row has the wrong form.

    HTCondor gets an ``E`` line for such a request; the console shows the text.
    """

    code = "BG-BAD-REQUEST"
    says_all = True


class ConfigError(GahpError):
    """A setting is missing, wrong or unsafe."""

    code = "BG-CONFIG"
    says_all = True


class JobRefused(GahpError):
    """The project would change a job or fail on it, so it was refused; nothing was created.

    Attributes:
        job_name: the refused job, if the error is about a single one.
    """

    code = "BG-JOB-REFUSED"
    spoils_batch = True

    def __init__(self, message: str, *, job_name: str | None = None) -> None:
        super().__init__(message)
        self.job_name = job_name


class BatchTooLarge(JobRefused):
    """A batch whose request is too large for the project; smaller batches may fit.

    Attributes:
        nbytes: the request's size.
    """

    code = "BG-BATCH-TOO-LARGE"

    def __init__(self, message: str, *, nbytes: int) -> None:
        super().__init__(message)
        self.nbytes = nbytes


class NameInUse(JobRefused):
    """A job of another batch has this name, and a project accepts a name only once, for ever."""

    code = "BG-NAME-IN-USE"


class StagingError(GahpError):
    """An input file cannot be read, changed while it was sent, or is too large for the project.

    Attributes:
        path: the file to blame; without one, the project does not keep the files it gets.
        errno: the operating system's error number, 0 without one.
    """

    code = "BG-STAGING"

    def __init__(
        self, message: str, *, path: str | None = None, errno: int = 0, passes: bool = False
    ) -> None:
        super().__init__(message)
        self.path = path
        self.errno = errno
        self.passes = passes or path is None or errno in PASSING


class OutputError(GahpError):
    """An output is missing, damaged, or cannot be written to its destination."""

    code = "BG-OUTPUT"

    def __init__(self, message: str, *, passes: bool = False) -> None:
        super().__init__(message)
        self.passes = passes


class BatchConflict(GahpError):
    """The batch's name is taken, or its state does not allow the request."""

    code = "BG-BATCH-CONFLICT"
    says_all = True


class JobsNotListed(BatchConflict):
    """The project has accepted a batch's jobs without an error, but does not list them."""

    code = "BG-JOBS-NOT-LISTED"
    spoils_batch = True
    says_all = False


class WrongBatch(GahpError):
    """A name or id does not identify one batch of this account.

    Several batches have this name, or one has it as its id and another as its name; or the batch
    belongs to another account.

    Attributes:
        said: the name or id.
    """

    code = "BG-WRONG-BATCH"

    def __init__(self, message: str, *, said: str) -> None:
        super().__init__(message)
        self.said = said


class NoSuchBatch(WrongBatch):
    """No batch of this account has this name or id."""

    code = "BG-NO-SUCH-BATCH"


class NoSuchJob(GahpError):
    """A batch, or the ledger, has no job of this name or id."""

    code = "BG-NO-SUCH-JOB"


class NotKnownHere(GahpError):
    """What was submitted is asked for on a machine that has no manifest of the batch."""

    code = "BG-NOT-KNOWN-HERE"


class JobFailed(GahpError):
    """A job whose result was asked for has failed, or lacks an output that it has to have.

    Attributes:
        job: the job's name.
        exit_status: its exit status; None if it is not known.
        why: the reason on one line.
        stderr: what it wrote to its stderr; "" if nothing, or the project does not tell.
    """

    code = "BG-JOB-FAILED"

    def __init__(
        self,
        message: str,
        *,
        job: str,
        exit_status: int | None = None,
        why: str = "",
        stderr: str = "",
    ) -> None:
        super().__init__(message)
        self.job = job
        self.exit_status = exit_status
        self.why = why
        self.stderr = stderr


class RemoteError(JobFailed):
    """A call of a function raised an exception on a volunteer's computer, or has no value.

    All texts come from there; they cannot control a terminal. What was raised is not here: it would
    have to be unpickled.

    Attributes:
        type_name: the type of what was raised, such as ``ValueError``; "" if nothing was raised:
            the image lacks a module, the value cannot be sent back, or is not what it has to be.
        message: its message, or what is wrong.
        traceback: as Python printed it there, with the lines of the function; "" without one.
    """

    code = "BG-REMOTE"

    def __init__(
        self,
        text: str,
        *,
        job: str,
        exit_status: int | None = None,
        why: str = "",
        stderr: str = "",
        type_name: str = "",
        message: str = "",
        traceback: str = "",
    ) -> None:
        super().__init__(text, job=job, exit_status=exit_status, why=why, stderr=stderr)
        self.type_name = type_name
        self.message = message
        self.traceback = traceback


class Stopped(GahpError):
    """The work was stopped because it is no longer wanted.

    Files that were complete stay, and jobs go on. A future raises this if its project object was
    closed before the result was there.
    """

    code = "BG-STOPPED"


class LedgerError(GahpError):
    """The ledger cannot be opened or written, or what is asked of it cannot be done."""

    code = "BG-LEDGER"


class RpcError(GahpError):
    """An exchange with a project failed.

    Attributes:
        rpc: the RPC's name, for example ``create_batch``.
        host: the project's host (and port, unless it is the scheme's default).
        gave_up: whether the same was asked again until the time for it was over: more time may
            help.
    """

    code = "BG-RPC"
    gave_up: bool = False

    def __init__(self, message: str, *, rpc: str, host: str) -> None:
        super().__init__(message)
        self.rpc = rpc
        self.host = host


class TransportError(RpcError):
    """No answer: connection refused, reset, timed out, certificate, redirect, HTTP 4xx or 5xx.

    Attributes:
        status: the HTTP status, if there was one.
    """

    code = "BG-TRANSPORT"
    passes = may_be_running = True

    def __init__(
        self,
        message: str,
        *,
        rpc: str,
        host: str,
        may_be_running: bool = True,
        status: int | None = None,
        passes: bool = True,
    ) -> None:
        super().__init__(message, rpc=rpc, host=host)
        self.status = status
        self.passes = passes
        self.may_be_running = may_be_running


class ProtocolError(RpcError):
    """An answer that is not a complete reply: HTML, empty, cut off, a PHP fatal error.

    Attributes:
        php_fatal: whether the project's PHP crashed on this request, as it will again
            (``web-rpcs.rst``, "query_completed_job" and "Files").
        cut: whether the reply ended early or was empty; the next one may be complete.
    """

    code = "BG-PROTOCOL"
    passes = may_be_running = True

    def __init__(
        self,
        message: str,
        *,
        rpc: str,
        host: str,
        php_fatal: bool = False,
        cut: bool = False,
    ) -> None:
        super().__init__(message, rpc=rpc, host=host)
        self.php_fatal = php_fatal
        self.passes = not php_fatal
        self.cut = cut


class ProjectError(RpcError):
    """A complete reply in which the project refuses.

    Attributes:
        number: the project's ``error_num`` (nearly always -1).
        words: the project's ``error_msg``, in full.
        named: the object that the words name, as the project wrote it; "" if they name none. The
            class tells its kind: a batch, a job, a file, or for RequestTooLarge the highest number
            of files.
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
    ) -> None:
        super().__init__(message, rpc=rpc, host=host)
        self.number = number
        self.words = words
        self.named = named

    @classmethod
    def of(cls, error: ProjectError, message: str, *, words: str = "", named: str = "") -> Self:
        """Return an error of this class about the same refusal, with another message."""
        return cls(
            message,
            rpc=error.rpc,
            host=error.host,
            number=error.number,
            words=words or error.words,
            named=named,
        )


class ProjectDown(ProjectError):
    """The project is stopped for maintenance (-183) or its database is down (-138)."""

    code = "BG-PROJECT-DOWN"
    passes = may_be_running = True
    concerns = "project"


class DatabaseTrouble(ProjectError):
    """The project's database failed just now: a deadlock, a full disk, a lost server."""

    code = "BG-DATABASE-TROUBLE"
    passes = True


class QuotaExceeded(ProjectError):
    """The account has as many unfinished jobs as it may have."""

    code = "BG-QUOTA-EXCEEDED"
    passes = True


class PermissionDenied(ProjectError):
    """The account is unknown, or lacks the right that this request needs."""

    code = "BG-PERMISSION-DENIED"
    says_all = True
    concerns = "app"


class BadAuthenticator(PermissionDenied):
    """No account of the project has this authenticator."""

    code = "BG-BAD-AUTHENTICATOR"
    concerns = "account"


class NoSubmitAccess(PermissionDenied):
    """The account may not submit: to this app, or at all."""

    code = "BG-NO-SUBMIT-ACCESS"


class NoFileAccess(NoSubmitAccess):
    """The account may not send files, and so may not submit at all."""

    code = "BG-NO-FILE-ACCESS"
    concerns = "account"


class NotOwner(PermissionDenied):
    """The batch, or the job's batch, belongs to another account."""

    code = "BG-NOT-OWNER"
    concerns = "batch"


class NotFound(ProjectError):
    """The project does not know the named batch, job, app or file."""

    code = "BG-NOT-FOUND"
    says_all = True


class AppNotFound(NotFound):
    """The project has no such app."""

    code = "BG-APP-NOT-FOUND"
    concerns = "app"


class TemplatesMissing(NotFound):
    """The project has no template files for an app: its jobs bring their own."""

    code = "BG-TEMPLATES-MISSING"
    concerns = "app"


class BatchNotFound(NotFound):
    """The project has no such batch."""

    code = "BG-BATCH-NOT-FOUND"
    concerns = "batch"


class JobNotFound(NotFound):
    """The project has no such job."""

    code = "BG-JOB-NOT-FOUND"


class OutputGone(NotFound):
    """The instance did not upload this output, or the project has deleted it: ``named``, a path."""

    code = "BG-OUTPUT-GONE"


class DuplicateJob(ProjectError):
    """A job of this name exists already, in this batch or in another one."""

    code = "BG-DUPLICATE-JOB"


class BatchSubmitted(ProjectError):
    """The batch was already submitted: jobs cannot be added to it."""

    code = "BG-BATCH-SUBMITTED"


class InputGone(ProjectError):
    """An input file is not on the project (any more); ``named``: its physical name."""

    code = "BG-INPUT-GONE"


class RequestTooLarge(ProjectError):
    """The request is too large for PHP; ``named``: how many files it accepts, if they are why."""

    code = "BG-REQUEST-TOO-LARGE"


class FileTooLarge(ProjectError):
    """The file is too large for PHP; ``named``: its physical name."""

    code = "BG-FILE-TOO-LARGE"


class FileDiffers(ProjectError):
    """The project has a file of this physical name with other contents."""

    code = "BG-FILE-DIFFERS"
