"""The files that a job's instance uploaded, by their number in the output template.

get_output.php counts the files that were uploaded: if an optional one is absent, those after it
move up, and it answers with another file's content. The name it gives the file,
``<result>_r<random>_<n>``, ends in the number in the template (``web-rpcs.rst``, "get_output").
"""

from __future__ import annotations

import functools
import re
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from boinc_gahp.errors import OutputError, OutputGone, OutputNotFound, ProjectDown, ProjectError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from boinc_gahp.fetch.context import FetchContext
    from boinc_gahp.rpc.outputs import OutputStream
    from boinc_gahp.rpc.types import ResultInfo

_NUMBER = re.compile(r"_([0-9]{1,6})\Z")


class NotUploaded(Exception):
    """The instance did not upload a file with that number."""


def uploaded_by(context: FetchContext, job_name: str, instance: ResultInfo | None) -> Uploaded:
    """Return the files that a job's canonical instance uploaded.

    ``workunit_file`` has the authenticator in its URL, and so in the project's access log
    (``web-rpcs.rst``, "The RPCs"); ``result_file`` has not. So the former is only used for jobs
    whose instance cannot be found.
    """
    project = context.project
    if instance is None:
        return Uploaded(functools.partial(project.workunit_file, job_name), job_name)
    return Uploaded(functools.partial(project.result_file, instance.name), job_name)


class Uploaded:
    """The uploaded files of one instance; used by one thread.

    Args:
        open_file: opens the k-th uploaded file.
        job_name: for error messages.
    """

    def __init__(
        self, open_file: Callable[[int], AbstractContextManager[OutputStream]], job_name: str
    ) -> None:
        self._open_file = open_file
        self.job_name = job_name
        # The number in the template of the k-th uploaded file, as far as known.
        self._numbers: dict[int, int] = {}
        # Places without a file.
        self._empty: set[int] = set()

    @contextmanager
    def open(self, number: int, *, numbered: bool = True) -> Iterator[OutputStream]:
        """Open the file with this number in the template.

        Args:
            number: the number.
            numbered: False for a file whose name the template fixes: it does not end in a number.

        Raises:
            Absent: there is no such file.
            OutputError: the project has deleted it.
            RpcError: see :meth:`WebRpcs.result_file`.
        """
        with ExitStack() as stack:
            if numbered:
                yield self._find(number, stack)
            else:
                yield stack.enter_context(self._open_file(number))

    def _find(self, number: int, stack: ExitStack) -> OutputStream:
        while True:
            place = self._place(number)
            if place is None:
                raise NotUploaded
            try:
                stream = stack.enter_context(self._open_file(place))
            except ProjectDown:
                raise
            except ProjectError as error:
                self._learn_from(error, place, number)
                continue
            found = _NUMBER.search(stream.filename or "")
            if found is None:
                return stream  # the project does not tell the number: only its count is known
            self._numbers[place] = int(found[1])
            if int(found[1]) == number:
                return stream
            stack.close()

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

    def _learn_from(self, error: ProjectError, place: int, number: int) -> None:
        """Learn from an ``ERROR:`` page; raise if it is about the wanted file."""
        if not isinstance(error, OutputGone | OutputNotFound):
            raise error
        found = _NUMBER.search(error.named.strip())
        if found is None or "/" not in error.named:
            # No file has this place: the number is bad, or what is gone is not a file but one of
            # the project's directories (wire/get_output__workunit_file_num_out_of_range).
            self._empty.add(place)
        elif int(found[1]) != number:
            self._numbers[place] = int(found[1])
        else:
            raise OutputError(
                f"the project {error.host} has deleted output number {number} of job "
                f"{self.job_name!r}: it keeps outputs only until its own assimilator has seen "
                "them (it says: no such file)"
            ) from error
