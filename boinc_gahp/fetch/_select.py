"""Which outputs a job has: those of its output template, and others that its instance has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp.templates.reading import read_output_template, read_templates

if TYPE_CHECKING:
    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.locate import Located
    from boinc_gahp.rpc.types import ResultInfo
    from boinc_gahp.templates.types import OutputFileInfo, OutputTemplate


@dataclass(frozen=True, slots=True)
class Output:
    """One output of a job.

    Attributes:
        name: its logical name (open_name).
        number: its number in the output template.
        numbered: whether the project's name for it ends in that number.
        optional: whether it may be absent.
        gzip: whether the volunteer compresses it (gzip_when_done).
        max_bytes: the most bytes it can have, by the template (max_nbytes) and by the size that
            the project tells; None if neither is known.
    """

    name: str
    number: int
    numbered: bool = True
    optional: bool = False
    gzip: bool = False
    max_bytes: int | None = None


def outputs_of(
    context: FetchContext,
    job_name: str,
    located: Located | None,
    instance: ResultInfo | None,
    own_template: str | None,
) -> list[Output]:
    """Return the outputs of the app's or the job's own template, and others the instance has.

    A job that was submitted with its own output template can have more outputs than its app; the
    project does not tell their names (``web-rpcs.rst``, "Queries").

    Args:
        context: the project.
        job_name: the job.
        located: where it is, if that is known.
        instance: its canonical instance, if the project shows it.
        own_template: the job's own output template (XML), if it is known here.

    Raises:
        RpcError: the project could not be reached.
        TemplateError: the template cannot be read.
    """
    template: OutputTemplate
    if own_template is not None:
        template = read_output_template(own_template)
    elif located is not None:
        template = context.cache.templates(located.app_name).output
    else:
        template = read_templates(context.project.get_templates(job_name=job_name))[1]
    sizes = () if instance is None else instance.outfile_sizes
    outputs = [
        Output(
            name=info.open_name,
            number=index if info.number is None else info.number,
            numbered=info.number is not None,
            optional=info.optional,
            gzip=info.gzip_when_done,
            max_bytes=_most_bytes(info, sizes[index : index + 1], own_template is not None),
        )
        for index, info in enumerate(template.files)
    ]
    if len(sizes) > len(outputs):
        context.cache.warn_once(
            ("extra outputs", job_name),
            "Job %s has %d outputs, but its template names %d: the others are called output_N",
            job_name,
            len(sizes),
            len(outputs),
        )
        outputs += [
            Output(f"output_{number}", number, optional=True)
            for number in range(len(outputs), len(sizes))
        ]
    return outputs


def _most_bytes(info: OutputFileInfo, size: tuple[int, ...], is_own: bool) -> int | None:
    """Return the most bytes that an output can have.

    Args:
        info: the output in the template.
        size: what the project tells, compressed if the volunteer does that; or nothing.
        is_own: whether the template is the job's own; else the job may have another one.
    """
    limit = info.max_nbytes
    most = int(limit) if limit is not None and 0 < limit < 1 << 63 else None
    if is_own or (size and most is not None and size[0] <= most):
        return most
    return size[0] if size and not info.gzip_when_done else None
