"""What a project's error messages mean: the error class, the object they name, and the remedy.

``error_num`` is -1 for nearly all refusals, so the text must be read (``web-rpcs.rst``, "Transport
and framing"). This is done only here.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

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
    OutputNotFound,
    PermissionDenied,
    ProjectDown,
    ProjectError,
    QuotaExceeded,
    RequestTooLarge,
    TemplatesMissing,
    TooManyFiles,
)

if TYPE_CHECKING:
    from collections.abc import Callable

#: Numbers of the project's own error list.
WEB_STOPPED = -183
DATABASE_DOWN = -138


class _Refusal(NamedTuple):
    """What a message means: the error class, and what its reader should do; "": it says it.

    ``find`` looks for it in a message. The group ``named`` of what it finds is the batch, job or
    other object that the message names.
    """

    find: Callable[[str], re.Match[str] | None]
    error: type[ProjectError]
    advice: str = ""


def _begins(words: str, error: type[ProjectError], advice: str = "") -> _Refusal:
    pattern = re.compile(rf"\s*(?:{words})", re.IGNORECASE | re.DOTALL)
    return _Refusal(pattern.match, error, advice)


def _holds(words: str, error: type[ProjectError], advice: str = "") -> _Refusal:
    return _Refusal(re.compile(words, re.IGNORECASE).search, error, advice)


#: The authenticator came from BOINC_SELECT_PROJECT, so from the file in a job's grid_resource, or
#: from a settings file.
_CHECK_AUTHENTICATOR = "check the authenticator in the file that grid_resource or the settings name"

#: The first one that matches counts.
_REFUSALS = (
    _begins("(?:bad|no) authenticator|bad auth str", BadAuthenticator, _CHECK_AUTHENTICATOR),
    _begins(
        "no submit access",
        NoSubmitAccess,
        "ask the project's admin for the right to submit to this app",
    ),
    _begins(
        "no file access",
        NoFileAccess,
        "ask the project's admin for the right to submit (user_submit)",
    ),
    _begins(
        "not owner(?: of (?P<named>.*))?", NotOwner, "it belongs to another account of the project"
    ),
    _begins("no batch named (?P<named>.*)|no (?:such )?batch", BatchNotFound),
    _begins("no job (?P<named>.*)|no such job|job not found|no (?:such )?workunit", JobNotFound),
    _begins("app not found|no such app|no app", AppNotFound),
    _begins(
        "template file missing",
        TemplatesMissing,
        "the app has no template files on the project, so each of its jobs has to bring its own",
    ),
    _begins(
        "couldn't parse input template file",
        ProjectError,
        "its file templates/APP_in is not XML, or its PHP 8 reads no template files: then the "
        'admin changes html/inc/util_basic.inc as "PHP 8 and templates" in the guide for project '
        "admins says",
    ),
    _begins("no such file:? ?(?P<named>.*)", OutputGone),
    _begins("bad file num", OutputNotFound),
    _begins(
        r"(?P<named>\S*) upload failed.*exceeds (?:upload_max_filesize|MAX_FILE_SIZE)",
        FileTooLarge,
    ),
    _begins("no canonical result", NotFound),
    _begins(
        # Nothing after the colon: PHP dropped the request because of its size.
        r"can't parse request message:\s*\Z",
        RequestTooLarge,
        "the request was larger than the project's post_max_size, or did not arrive whole",
    ),
    _holds(r"md5_file: can't open (?:\S*/)?(?P<named>\S*)", InputGone),
    _holds(r"Duplicate entry '(?P<named>[^']*)' for key", DuplicateJob),
    _holds("batch not in init state", BatchSubmitted),
    _holds("limit on jobs in progress|too many jobs in progress", QuotaExceeded),
    _holds(
        # These are about the project's database, not about the request (``web-rpcs.rst``,
        # "submit_batch", has those that a job's text can cause: syntax, length, duplicates).
        "deadlock found|lock wait timeout|server has gone away|lost connection to"
        "|too many connections|is full|disk full|no space left|error writing file|read-only"
        "|crashed",
        DatabaseTrouble,
        "its database has trouble: try again later, or tell its admin",
    ),
    _holds(r"# of uploaded files \((?P<named>\d{1,9})\) doesn't agree with", TooManyFiles),
    _holds(r"file immutability violation(?: for (?P<named>\S*))?", FileDiffers),
)


def meaning(number: int, words: str) -> tuple[type[ProjectError], str, str]:
    """Return the meaning of a refusal, from the project's number and words.

    Returns:
        The error class; the batch, job or other object that the message names, as the project
        wrote it, or ""; and advice, or "".
    """
    if number in {WEB_STOPPED, DATABASE_DOWN}:
        return ProjectDown, "", "the project is down: try again later"
    for refusal in _REFUSALS:
        if found := refusal.find(words):
            return refusal.error, found.groupdict().get("named") or "", refusal.advice
    return ProjectError, "", ""


#: Refusals of the account as such; they come before anything is done.
OF_THE_ACCOUNT: tuple[type[PermissionDenied], ...] = (
    BadAuthenticator,
    NoSubmitAccess,
    NoFileAccess,
)
