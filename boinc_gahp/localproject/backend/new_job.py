"""The description of a job to be made: the options of BOINC's ``create_work``."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from boinc_gahp.localproject.server.replies import RpcFailed


class RemoteInput(NamedTuple):
    """An input file on another server than the project's; size in bytes, MD5 in hex.

    Volunteers know it as ``js_<md5>`` (``templates.rst``, "Input templates").
    """

    url: str
    nbytes: float
    md5: str


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to be made; fields are named as in ``templates.rst`` and create_work's options.

    None, or an empty value, means BOINC's default. For the fields from ``rsc_fpops_est`` to
    ``size_class``, the input template wins: they are used where it has no value.

    Attributes:
        name: unique in the project; empty: one is generated.
        command_line: as it is stored, ``&`` and ``<`` escaped: hosts unescape it once.
        files: physical names of staged files, or remote files, in the input template's order.
        rsc_fpops_est, rsc_fpops_bound: floating-point operations.
        rsc_memory_bound, rsc_disk_bound: bytes.
        rsc_bandwidth_bound: bytes a second.
        delay_bound: seconds.
        app_version_num: the only version of the app that may be used; 0: the newest.
        input_template, output_template: paths below the project's directory.
        target_host, target_user: ids; the job goes to nobody else.
    """

    name: str = ""
    command_line: str | None = None
    files: tuple[str | RemoteInput, ...] = ()
    priority: int | None = None
    rsc_fpops_est: float | None = None
    rsc_fpops_bound: float | None = None
    rsc_memory_bound: float | None = None
    rsc_disk_bound: float | None = None
    rsc_bandwidth_bound: float | None = None
    delay_bound: float | None = None
    min_quorum: int | None = None
    target_nresults: int | None = None
    max_error_results: int | None = None
    max_total_results: int | None = None
    max_success_results: int | None = None
    size_class: int | None = None
    app_version_num: int | None = None
    input_template: str = ""
    output_template: str = ""
    target_host: int | None = None
    target_user: int | None = None

    def over(self, defaults: NewJob) -> NewJob:
        """Return this job with its missing values taken from ``defaults``."""
        own = {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) not in (None, "", ())
        }
        return replace(defaults, **own)


class WorkError(RpcFailed):
    """A job cannot be made. The text says which, why, and what to do.

    Attributes:
        message: the message of the real ``create_work``, for clients of the RPC.
    """

    def __init__(self, advice: str, message: str | None = None) -> None:
        super().__init__(f"create_work failed: {advice}\n" if message is None else message)
        self.advice = advice

    def __str__(self) -> str:
        return self.advice
