"""Which outputs a job has, and the files that its instance uploaded, by their number there.

get_output.php counts the files that were uploaded: if an optional one is absent, those after it
move up, and it answers with another file's content. The name it gives the file,
``<result>_r<random>_<n>``, ends in the number in the template (``web-rpcs.rst``, "get_output").
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    OutputError,
    OutputGone,
    ProjectDown,
    ProjectError,
    ProtocolError,
    TransportError,
)
from boinc_gahp.templates.reading import read_templates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.fetch.locate import Located
    from boinc_gahp.rpc.outputs import OutputStream
    from boinc_gahp.rpc.types import ResultInfo
    from boinc_gahp.templates.types import OutputFileInfo, OutputTemplate

_NUMBER = re.compile(r"_([0-9]{1,6})\Z")


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
    own_template: OutputTemplate | None,
) -> list[Output]:
    """Return the outputs of the app's or the job's own template, and others the instance has.

    A job that was submitted with its own output template can have more outputs than its app; the
    project does not tell their names (``web-rpcs.rst``, "Queries").

    Args:
        context: the project.
        job_name: the job.
        located: where it is, if that is known.
        instance: its canonical instance, if the project shows it.
        own_template: the job's own output template, if it is known here.

    Raises:
        RpcError: the project could not be reached.
        TemplateError: the template cannot be read.
    """
    if own_template is not None:
        template = own_template
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


def uploaded_by(context: FetchContext, job_name: str, instance: ResultInfo | None) -> Uploaded:
    """Return the files that a job's canonical instance uploaded.

    ``workunit_file`` has the authenticator in its URL, and so in the project's access log
    (``web-rpcs.rst``, "The RPCs"); ``result_file`` has not. So the former is only used for jobs
    whose instance cannot be found.
    """
    project = context.project
    if instance is None:
        return Uploaded(functools.partial(project.workunit_file, job_name), job_name)
    open_file = functools.partial(project.result_file, instance.name)
    open_moved = functools.partial(project.moved_file, instance.id)
    return Uploaded(open_file, job_name, open_moved, instance.outfile_sizes)


@dataclass(slots=True)
class Uploaded:
    """The uploaded files of one instance; used by one thread.

    Attributes:
        open_file: opens the k-th uploaded file.
        job_name: for error messages.
        open_moved: opens the file with a number in the template, if an assimilator has moved it.
        sizes: bytes of the uploaded files.
    """

    open_file: Callable[[int], OutputStream]
    job_name: str
    open_moved: Callable[[int], OutputStream] | None = None
    sizes: Sequence[int] = ()
    #: The number in the template of the k-th uploaded file, as far as known.
    _numbers: dict[int, int] = field(default_factory=dict)
    #: Places without a file.
    _empty: set[int] = field(default_factory=set)

    def open(self, output: Output) -> OutputStream | None:
        """Open the file of an output; return None if the instance did not upload it.

        Raises:
            OutputError: the project has deleted it, or does not hand it out.
            RpcError: see :meth:`WebRpcs.result_file`.
        """
        number = output.number
        if not output.numbered:
            return self.open_file(number)
        while True:
            place = self._place(number)
            if place is None:
                return None
            try:
                stream = self.open_file(place)
            except ProjectDown:
                raise
            except ProjectError as error:
                self._learn_from(error, place)
                if self._numbers.get(place) == number:
                    return self._moved(output, place, error)
                continue
            found = _NUMBER.search(stream.filename or "")
            if found is None:
                return stream  # the project does not tell the number: only its count is known
            self._numbers[place] = int(found[1])
            if int(found[1]) == number:
                return stream
            stream.close()

    def _place(self, number: int) -> int | None:
        """Return the place to ask for next, or None if the file is known to be absent.

        The file's own number comes first: most jobs have no optional files, and a project may count
        as its templates do. Otherwise numbers grow with places, so the file is at most as many
        places down as its number.
        """
        shifted = any(place != there for place, there in self._numbers.items())
        if not (shifted or number in self._empty or number in self._numbers):
            return number
        low, high = 0, min([number, *(place - 1 for place in self._empty)])
        for place, there in self._numbers.items():
            if there == number:
                return place
            if there < number:
                low = max(low, place + 1)
            else:
                high = min(high, place - 1)
        return high if low <= high else None

    def _learn_from(self, error: ProjectError, place: int) -> None:
        """Learn from an ``ERROR:`` page which number the file at a place has."""
        if not isinstance(error, OutputGone):
            raise error
        found = _NUMBER.search(error.named.strip())
        if found is None or "/" not in error.named:
            # No file has this place: the number is bad, or what is gone is not a file but one of
            # the project's directories (wire/get_output__workunit_file_num_out_of_range).
            self._empty.add(place)
        else:
            self._numbers[place] = int(found[1])

    def _moved(self, output: Output, place: int, gone: ProjectError) -> OutputStream:
        """Open a file that is not where it was uploaded to.

        A file that is not there is not told from an empty one, so name and size have to be right
        (``web-rpcs.rst``, "get_output3").

        Raises:
            OutputError: it is deleted, or cannot be had from where it was moved to.
        """
        which = f"{output.number} of job {self.job_name!r}"
        name = f"{self.job_name}__file_{output.name}"
        if self.open_moved is not None and place < len(self.sizes):
            try:
                stream = self.open_moved(output.number)
            except ProjectDown:
                raise
            except TransportError as error:
                if error.status != 404:  # older servers do not have the page
                    raise
            except (ProjectError, ProtocolError) as refused:
                raise OutputError(
                    f"the project {gone.host} has deleted output number {which}, or its "
                    "assimilator has moved it away, and it is not handed out: "
                    f"{refused}; ask the admin for an "
                    "assimilator that leaves outputs where they are (sample_dummy_assimilator -d 3 "
                    "--app NAME), not batch_collect_assimilator"
                ) from gone
            else:
                if (stream.filename, stream.length) == (name, self.sizes[place]):
                    return stream
                stream.close()
        raise OutputError(
            f"the project {gone.host} has deleted output number {which} (it says: no such file): "
            "for later jobs its admin adds <no_delete/> to the app's output template, and runs an "
            "assimilator that leaves outputs where they are (sample_dummy_assimilator -d 3 --app "
            "NAME)"
        ) from gone
