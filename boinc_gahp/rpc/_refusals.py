"""What a project's error messages mean: the error class, the object they name, and the remedy.

``error_num`` is -1 for nearly all refusals, so the text must be read (``web-rpcs.rst``, "Transport
and framing"). This is done only here.
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
    QuotaExceeded,
    RequestTooLarge,
    TemplatesMissing,
)

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
_WRONG_KEY = (
    "the key in the file that grid_resource or the settings name is wrong: boinc_gahp login URL "
    "saves a new one in the settings"
)

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
