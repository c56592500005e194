"""Names of batches that are made from their contents: the same jobs have the same name.

So a program that was killed and runs again finds its batch, without a name that somebody has to
choose. The name is ``<stem>-<12 hex digits>``. If the batch of that name was aborted or retired, it
takes no more jobs, and the next one is ``<stem>-<12 hex digits>-2``, ``-3`` and so on.
"""

from __future__ import annotations

import hashlib
import json
from itertools import chain
from typing import TYPE_CHECKING

from boinc_gahp.api.manifest import describe
from boinc_gahp.api.manifest_files import readable_md5s
from boinc_gahp.api.patterns import BATCH
from boinc_gahp.api.request import similar_names
from boinc_gahp.errors import NotFound, NotOwner
from boinc_gahp.states import BatchState
from boinc_gahp.submit.checks import MAX_BATCH_NAME
from boinc_gahp.submit.types import LocalFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from boinc_gahp.api.session import Session
    from boinc_gahp.submit.types import SubmitRequest

__all__ = ["UNNAMED", "contents_name", "free_name", "name_of"]

#: The name of a batch whose name is not known yet.
UNNAMED = f"{{{BATCH}}}"

#: How many hex digits of the digest a name has. Should two requests have the same, the second is
#: refused, because its jobs are others than those of the first.
_DIGITS = 12
#: The most characters of a name's stem, so that there is room for the digits and a number.
_STEM = MAX_BATCH_NAME - 40
#: What a job's line in the manifest has besides what is sent to the project.
_NOT_SENT = ("sources", "parameters", "retry_of")
_TAKES_NO_MORE = (BatchState.ABORTED, BatchState.RETIRED)


def contents_name(session: Session, stem: str, request: SubmitRequest) -> str:
    """Return the name for the contents of a request; see :func:`free_name`.

    The name depends on the account, the app, and on all that is sent for the jobs: arguments, open
    names and contents of the files, sizes, priorities and templates. It does not depend on where
    the files are, on the parameters of rows, or on the lease.

    Args:
        session: the project and the account.
        stem: what the name begins with.
        request: for a batch of the name :data:`UNNAMED`.

    Raises:
        StagingError: a file changed while it was read.
    """
    return name_of(session, stem, _contents(session, request))


def name_of(session: Session, stem: str, contents: Iterable[object]) -> str:
    """Return the name for contents; see :func:`free_name` for whether a batch can have it.

    Args:
        session: the project and the account: two accounts cannot have batches of the same name.
        stem: what the name begins with.
        contents: what JSON can hold.
    """
    digest = hashlib.sha256()
    for each in chain([session.rpc.account], contents):
        digest.update(json.dumps(each, sort_keys=True).encode() + b"\n")
    return f"{stem[:_STEM]}-{digest.hexdigest()[:_DIGITS]}"


def free_name(session: Session, name: str) -> str:
    """Return the name, or the first like it whose batch was neither aborted nor retired.

    Raises:
        RpcError: the project could not be asked.
    """
    for each in chain([name], similar_names(name)):
        try:
            found = session.rpc.query_batch(batch_name=each).batch
        except NotFound:
            return each
        except NotOwner:
            continue
        if found.state not in _TAKES_NO_MORE:
            return each
    raise AssertionError("there is always another name")


def _contents(session: Session, request: SubmitRequest) -> Iterator[object]:
    """Yield what is sent for a request; reads files whose MD5s are not remembered."""
    paths = (
        item.path
        for _, job in request.jobs
        for item in job.files.values()
        if isinstance(item, LocalFile)
    )
    md5s = readable_md5s(session, paths, progress=request.progress)
    manifest = describe(request, md5s)
    yield manifest.common
    for name, line in manifest.jobs.items():
        sent = json.loads(line)
        yield name, {key: value for key, value in sent.items() if key not in _NOT_SENT}
