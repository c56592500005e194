"""The errors of RPCs: the right exception, with a message that says what to do.

``error_num`` is -1 for nearly all refusals, so the text must be read (``web-rpcs.rst``, "Transport
and framing"). This is done only here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.client import responses
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from boinc_gahp.errors import (
    AppNotFound,
    BadAuthenticator,
    BatchNotFound,
    BatchSubmitted,
    DatabaseTrouble,
    DuplicateJob,
    FileDiffers,
    FileTooLarge,
    InputGone,
    JobNotFound,
    NoFileAccess,
    NoSubmitAccess,
    NotFound,
    NotOwner,
    OutputGone,
    ProjectDown,
    ProjectError,
    ProtocolError,
    QuotaExceeded,
    RequestTooLarge,
    RpcError,
    TemplatesMissing,
    TransportError,
)
from boinc_gahp.rpc._foreign_errors import FOREIGN, translated
from boinc_gahp.rpc._pages import page_text, page_title
from boinc_gahp.rpc._replies import CHECK_URL
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lxml import etree

    from boinc_gahp.rpc._redact import Redactor
    from boinc_gahp.rpc._replies import Reply
    from boinc_gahp.rpc._table import Rpc

T = TypeVar("T")

_DOWN = re.compile(
    r"project down for maintenance|temporarily shut down|can.t connect to database", re.I
)
#: What to do about some statuses of HTTP.
_ADVICE = {
    404: "check the project's URL",
    413: "the web server does not accept a request of this size",
}
_QUERY = re.compile(r"\n[ \t]*query=")
_XML_PREFIX = re.compile(r"\s*<\?xml")

#: Numbers of the project's own error list.
WEB_STOPPED = -183
DATABASE_DOWN = -138


class ErrorRule(NamedTuple):
    """A refusal of the project that is known by its words.

    Attributes:
        words: a regular expression for them. Its group ``named`` is the batch, job or other object
            that they name.
        error: the error class.
        advice: what the reader should do; "": the message says it.
        anywhere: whether the words may stand anywhere; else the message begins with them.
    """

    words: str
    error: type[ProjectError]
    advice: str = ""
    anywhere: bool = False

    def find(self, message: str) -> re.Match[str] | None:
        """Return what a message without white space before it has of the words, if it has them."""
        find = re.search if self.anywhere else re.match
        return find(self.words, message, re.IGNORECASE | re.DOTALL)


#: The authenticator came from BOINC_SELECT_PROJECT, so from the file in a job's grid_resource, or
#: from a settings file.
_WRONG_KEY = "the account key is wrong: run boinc_gahp login URL"

#: The first one that matches counts.
_RULES = (
    ErrorRule("(?:bad|no) authenticator|bad auth str", BadAuthenticator, _WRONG_KEY),
    ErrorRule(
        "no submit access",
        NoSubmitAccess,
        "ask the project's admin for the right to submit to this app",
    ),
    ErrorRule(
        "no file access",
        NoFileAccess,
        "ask the project's admin for the right to submit (user_submit)",
    ),
    ErrorRule(
        "not owner(?: of (?P<named>.*))?", NotOwner, "it belongs to another account of the project"
    ),
    ErrorRule("no batch named (?P<named>.*)|no (?:such )?batch", BatchNotFound),
    ErrorRule("no job (?P<named>.*)|no such job|job not found|no (?:such )?workunit", JobNotFound),
    ErrorRule("app not found|no such app|no app", AppNotFound),
    ErrorRule(
        "template file missing",
        TemplatesMissing,
        "the app has no template files on the project, so each of its jobs has to bring its own",
    ),
    ErrorRule(
        "couldn't parse input template file",
        ProjectError,
        "its file templates/APP_in is not XML, or its PHP 8 reads no template files: then the "
        'admin changes html/inc/util_basic.inc as "PHP 8 and templates" in the guide for project '
        "admins says",
    ),
    ErrorRule("no such file:? ?(?P<named>.*)|bad file num", OutputGone),
    ErrorRule(
        r"(?P<named>\S*) upload failed.*exceeds (?:upload_max_filesize|MAX_FILE_SIZE)",
        FileTooLarge,
    ),
    ErrorRule("no canonical result", NotFound),
    ErrorRule(
        # Nothing after the colon: PHP dropped the request because of its size.
        r"can't parse request message:\s*\Z",
        RequestTooLarge,
        "the request was larger than the project's post_max_size, or did not arrive whole",
    ),
    ErrorRule(r"md5_file: can't open (?:\S*/)?(?P<named>\S*)", InputGone, anywhere=True),
    ErrorRule(r"Duplicate entry '(?P<named>[^']*)' for key", DuplicateJob, anywhere=True),
    ErrorRule("batch not in init state", BatchSubmitted, anywhere=True),
    ErrorRule("limit on jobs in progress|too many jobs in progress", QuotaExceeded, anywhere=True),
    ErrorRule(
        # These are about the project's database, not about the request (``web-rpcs.rst``,
        # "submit_batch", has those that a job's text can cause: syntax, length, duplicates).
        "deadlock found|lock wait timeout|server has gone away|lost connection to"
        "|too many connections|is full|disk full|no space left|error writing file|read-only"
        "|crashed",
        DatabaseTrouble,
        "its database has trouble: try again later, or tell its admin",
        anywhere=True,
    ),
    ErrorRule(
        r"# of uploaded files \((?P<named>\d{1,9})\) doesn't agree with",
        RequestTooLarge,
        anywhere=True,
    ),
    ErrorRule(r"file immutability violation(?: for (?P<named>\S*))?", FileDiffers, anywhere=True),
)


def meaning(number: int, words: str) -> tuple[type[ProjectError], str, str]:
    """Return the meaning of a refusal, from the project's number and words.

    Returns:
        The error class; the batch, job or other object that the message names, as the project
        wrote it, or ""; and advice, or "".
    """
    if number in {WEB_STOPPED, DATABASE_DOWN}:
        return ProjectDown, "", "the project is down: try again later"
    message = words.lstrip()
    for rule in _RULES:
        if found := rule.find(message):
            return rule.error, found.groupdict().get("named") or "", rule.advice
    return ProjectError, "", ""


@dataclass(frozen=True, slots=True)
class ReplyErrors:
    """Makes the errors of one RPC to one host about ``subject``."""

    rpc: Rpc
    host: str
    redact: Redactor
    subject: str = ""

    def translate(self, work: Callable[[], T]) -> T:
        """Return ``work()``; translate any exception of a library."""
        try:
            return work()
        except FOREIGN as foreign:
            error = translated(foreign, self.rpc, self.host, self.redact)
        # Raised outside the except block, which would keep the foreign error as __context__.
        raise error

    def chunks(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield ``chunks``; translate any exception of a library."""
        try:
            yield from chunks
        except FOREIGN as foreign:
            error = translated(foreign, self.rpc, self.host, self.redact)
        else:
            return
        raise error

    @property
    def _asked(self) -> str:
        """The beginning of an error: who was asked for what."""
        about = f" ({self.subject})" if self.subject else ""
        return f"{self.host}, asked to {self.rpc.asked}{about}"

    def refusal(self, number: int, words: str) -> ProjectError:
        """Return the error for the project's number and words."""
        words = self.redact(words)
        # The database's error is followed by the query, which may have a megabyte.
        shown = shorten(_QUERY.split(words, maxsplit=1)[0]) or f"error {number}"
        kind, named, advice = meaning(number, words)
        about = "; ".join(filter(None, (self.subject, advice)))
        about = f" ({about})" if about else ""
        return kind(
            f"{self.host} refuses to {self.rpc.asked}{about}: {shown}",
            rpc=self.rpc.name,
            host=self.host,
            number=number,
            words=words,
            named=named,
        )

    def status(self, status: int, reason: str, body: str) -> RpcError:
        """Return the error for an HTTP status other than success."""
        body = self.redact(body)
        if status == 500 and _XML_PREFIX.match(body):
            # With display_errors off a PHP fatal error looks like this.
            return self.protocol(
                "the project's PHP died of this request (HTTP 500 after the reply's beginning): "
                "its admin can find the reason in the web server's error log",
                php_fatal=True,
                cut=True,
            )
        title = shorten(page_title(body), 120)
        words = shorten(self.redact(reason), 120) or responses.get(status, "an unknown status")
        if title and words.lower() not in title.lower():
            words = f"{words}, {title!r}"
        advice = _ADVICE.get(status, "check the project's URL, or ask the project's admin")
        if status >= 500:
            advice = "try again later; if this continues, tell the project's admin"
        return TransportError(
            f"{self._asked}: HTTP {status} ({words}): {advice}",
            rpc=self.rpc.name,
            host=self.host,
            may_be_running=status >= 500,
            status=status,
            passes=status >= 500 or status in {408, 429},
        )

    def root_of(self, reply: Reply) -> etree._Element:
        """Return the root of ``reply``; raise its error if it is not a good one."""
        if reply.error is not None:
            raise self.refusal(reply.number, reply.words)
        fatal = reply.fatal
        if fatal is not None:
            raise self.protocol(
                f"the project's PHP died of this request: {shorten(self.redact(fatal.text), 300)}",
                php_fatal=True,
            )
        if reply.page is not None:
            raise self.page(reply.page)
        if reply.root is None:
            if reply.other:
                shown = shorten(self.redact(reply.other), 120)
                raise self.protocol(
                    f"the answer {shown!r} is not from a BOINC project: {CHECK_URL}"
                )
            if reply.empty:
                raise self.protocol("the answer is empty; try again", cut=True)
            # HTTP's framing is right: so PHP ended, as it does without display_errors and
            # output_buffering when it dies.
            raise self.protocol(
                "the answer is cut off; try again", php_fatal=self.rpc.dies, cut=True
            )
        if reply.mismatch:
            raise self.protocol(f"the answer's tags do not match ({reply.mismatch})")
        if reply.incomplete:
            raise self.incomplete(reply.incomplete)
        return reply.root

    def page(self, page: str) -> RpcError:
        """Return the error for a web page instead of a reply."""
        text = self.redact(page_text(page))
        down = _DOWN.search(text)
        if down:
            number = DATABASE_DOWN if "database" in down[0].lower() else WEB_STOPPED
            return self.refusal(number, down[0])
        title = shorten(self.redact(page_title(page)), 120)
        return self.protocol(f"a web page ({title!r}) came instead of an answer: {CHECK_URL}")

    def incomplete(self, what: str) -> ProtocolError:
        """Return the error for a reply that lacks something, or is endless."""
        return self.protocol(f"the answer is incomplete or wrong: {shorten(what, 200)}")

    def protocol(self, what: str, *, php_fatal: bool = False, cut: bool = False) -> ProtocolError:
        """Return the error for a reply that is wrong as ``what`` says."""
        return ProtocolError(
            f"{self._asked}: {what}",
            rpc=self.rpc.name,
            host=self.host,
            php_fatal=php_fatal,
            cut=cut,
        )
