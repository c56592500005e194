"""Behaviour of the real server that nobody would want; each can be switched on separately.

The sources are ``web-rpcs.rst`` and the recordings in ``wire/``. A client has to survive all of it,
so tests run with and without it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PhpLimits:
    """PHP's limits on uploads, as shipped; None means no limit. Sizes are bytes."""

    max_file_uploads: int | None = 20
    upload_max_filesize: int | None = 2 << 20
    post_max_size: int | None = 8 << 20

    @classmethod
    def none(cls) -> PhpLimits:
        """Return unlimited limits, as an admin of a bridge would set them."""
        return cls(None, None, None)


@dataclass(frozen=True, slots=True)
class Quirks:
    """Which misbehaviours are on; without arguments the sane profile, with PHP's limits."""

    limits: PhpLimits = PhpLimits()
    display_errors: bool = False
    """Replies contain PHP's warnings, and a fatal error is HTTP 200 with its text; when off, a
    fatal error is HTTP 500 with the beginning of a reply."""
    unescaped_names: bool = False
    """Names and messages are put into replies unescaped, so that ``&`` and ``<`` break the XML."""
    unclosed_aborted: bool = False
    """abort_jobs writes ``<aborted NAME>`` and never closes it."""
    partial_abort: bool = False
    """abort_jobs still aborts the jobs before an unknown one."""
    duplicate_batch_names: bool = False
    """create_batch accepts a name again; looking it up gives the lowest id."""
    partial_creation: bool = False
    """submit_batch commits about a megabyte of jobs at a time, and ends by setting the batch's
    state IN_PROGRESS, even if the state has changed since it was checked at the beginning."""
    raw_sql: bool = False
    """Names and command lines go into SQL text: ``'`` is an error and a backslash is eaten."""
    whole_seconds: bool = False
    """mod_time has whole seconds, so that min_mod_time loses events in the same second."""
    fatal_failed_job: bool = False
    """query_completed_job dies for a job without canonical instance."""
    shifted_file_numbers: bool = False
    """get_output.php's file_num counts only uploaded files, so that a missing optional file shifts
    those after it."""
    fatal_rows: bool = False
    """upload_files of an existing file or with too long a name, and query_files with an existing
    association die, as from PHP 8.1 on."""
    failing_delete_time: bool = False
    """query_files with a later delete_time updates it and then says that this failed."""
    missing_template_succeeds: bool = False
    """submit_batch with a missing output template reports success and makes no job."""
    errors_as_html: bool = False
    """get_output.php's errors, one line of text, call themselves HTML."""
    dots_empty_archives: bool = False
    """get_output.php's workunit_files sends 0 bytes for a job whose name has a dot: zip takes
    the temporary name made from it for an archive's, and writes to a file that nobody sends."""
    long_names_stop_transitioner: bool = False
    """A job is accepted even if its results' names do not fit into the database; the transitioner
    quits at it in every pass, and does nothing else."""
    slow_failed_logins: bool = False
    """lookup_account.php sleeps for 5 s before it says that a password is wrong."""
    apps_need_login: bool = False
    """apps.php redirects those who have not logged in to the form for that."""

    @classmethod
    def as_is(cls, limits: PhpLimits | None = None) -> Quirks:
        """Return the profile of the recorded server: everything on."""
        return cls(
            limits=limits or PhpLimits(),
            display_errors=True,
            unescaped_names=True,
            unclosed_aborted=True,
            partial_abort=True,
            duplicate_batch_names=True,
            partial_creation=True,
            raw_sql=True,
            whole_seconds=True,
            fatal_failed_job=True,
            shifted_file_numbers=True,
            fatal_rows=True,
            failing_delete_time=True,
            missing_template_succeeds=True,
            errors_as_html=True,
            dots_empty_archives=True,
            long_names_stop_transitioner=True,
            slow_failed_logins=True,
            apps_need_login=True,
        )
