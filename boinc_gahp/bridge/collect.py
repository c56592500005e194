"""A finished job's outputs into a directory of their own, under their own names.

Unlike BOINC_FETCH_OUTPUT it is told what query_batch says of the job, so that it has less to ask:
one RPC for the instance's name, one for stderr if that is wanted, and one for each output.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from boinc_gahp.bridge.fetching.delivered import Delivered
from boinc_gahp.bridge.fetching.engine import deliver, write_text
from boinc_gahp.bridge.fetching.fetch_output import opener_of, outputs_of
from boinc_gahp.bridge.fetching.locate import Located
from boinc_gahp.bridge.fetching.selection import DEV_NULL, plain_names, select
from boinc_gahp.bridge.fetching.stderr import unwrap
from boinc_gahp.bridge.fetching.uploaded import Uploaded
from boinc_gahp.bridge.gate import OPEN
from boinc_gahp.bridge.known import JobIds
from boinc_gahp.bridge.types import OWN, Collected, FetchRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from boinc_gahp.bridge.context import Context
    from boinc_gahp.bridge.gate import Gate
    from boinc_gahp.bridge.types import CollectRequest
    from boinc_gahp.rpc import OutputStream

#: What stderr is called, and what where an output has that name.
_STDERR = ("stderr.txt", "stderr.boinc.txt")


def collect(
    context: Context,
    request: CollectRequest,
    gate: Gate = OPEN,
    count: Callable[[int], object] = lambda _: None,
) -> Collected:
    """Put a job's outputs in place; each appears whole, or not at all.

    An app's zip archive stays one. Outputs have their open names without directories; two with the
    same last part keep their directories; ``%2E`` stands for a dot at the beginning of a part.
    Those beyond the app's output template, of a job with a template of its own, are called
    ``output_N``.

    Args:
        context: the project.
        request: which job, and where to.
        gate: is entered for each change in the directory, and asked before each question.
        count: is called with the number of bytes that have come, now and then; what comes once
            more after a failure counts once more.

    Raises:
        OutputError: an output is missing, deleted, damaged, or cannot be written.
        RpcError: the project could not be asked, or refused.
        TemplateError: the app's output template cannot be read.
        Exception: what the gate raises when it is closed.
    """
    if request.again:
        context = replace(context, delivered=Delivered(None))
    gate.check()
    located = Located(
        request.batch_id, request.app_name, JobIds(request.job_id, request.instance_id)
    )
    instance = context.known.instance(located.ids)
    asked = FetchRequest(request.job_name, str(request.directory), None, "ALL", folder=True)
    gate.check()
    outputs = outputs_of(context, asked, located, instance)
    names = {
        item.output: str(item.destination.relative_to(request.directory))
        for item in select(asked, plain_names([output.name for output in outputs]))
    }
    stderr = None
    if request.stderr:
        taken = set(names.values())
        name = next((name for name in _STDERR if name not in taken), f"{OWN}.stderr")
        if name not in request.have:
            stderr = request.directory / name
            gate.check()
            told = context.project.query_completed_job(request.job_name)
            write_text(asked, stderr, unwrap(told.stderr_out), gate)
    # What is there is not wanted.
    there = ((name, DEV_NULL) for name, path in names.items() if path in request.have)
    asked = replace(asked, specs=tuple(there))
    open_file = opener_of(context, request.job_name, instance)
    places = deliver(
        context,
        asked,
        outputs,
        Uploaded(_counted(open_file, gate, count), request.job_name),
        request.job_name if instance is None else instance.name,
        gate=gate,
        unpacks=False,
    )
    return Collected(places, stderr)


class _Counted:
    """An output whose bytes are counted as they come."""

    def __init__(self, stream: OutputStream, gate: Gate, count: Callable[[int], object]) -> None:
        self.filename = stream.filename
        self.length = stream.length
        self._stream = stream
        self._gate = gate
        self._count = count

    def chunks(self, size: int) -> Iterator[bytes]:
        for data in self._stream.chunks(size):
            self._gate.check()
            self._count(len(data))
            yield data


def _counted(
    open_file: Callable[[int], AbstractContextManager[OutputStream]],
    gate: Gate,
    count: Callable[[int], object],
) -> Callable[[int], AbstractContextManager[OutputStream]]:
    @contextmanager
    def open_counted(number: int) -> Iterator[OutputStream]:
        gate.check()
        with open_file(number) as stream:
            yield cast("OutputStream", _Counted(stream, gate, count))

    return open_counted
