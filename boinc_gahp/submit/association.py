"""Asks which files the project has, and associates them with the batch that needs them there.

A file whose delete_time has passed stays on the project as long as an active batch is associated
with it, so each of a batch's files has to be. On PHP 8.1 and later query_files dies at the first
association that exists already (``web-rpcs.rst``, "Files"), and this is always so when a batch is
staged for the second time.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from boinc_gahp.errors import (
    PermissionDenied,
    ProjectDown,
    ProjectError,
    ProtocolError,
    RpcError,
    TransportError,
)
from boinc_gahp.threads import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from boinc_gahp.rpc.client import WebRpcs

log = logging.getLogger("boinc_gahp.submit")

#: Names in one query_files: 0.6 s (``web-rpcs.rst``, "Files"), and far below post_max_size.
_NAMES_PER_QUERY = 5_000
#: Up to this many files are associated one by one, without looking for a pattern first.
_FEW = 32


def absent_names(project: WebRpcs, physical_names: Iterable[str]) -> list[str]:
    """Return those of the names that the project has no file for; nothing is changed there.

    Raises:
        RpcError: the project could not be reached, or does not accept one as a file name.
    """
    parts = _parts(list(dict.fromkeys(physical_names)))
    return [part[index] for part in parts for index in project.query_files(part)]


class Association:
    """Asks for files on behalf of a batch.

    Args:
        project: the project, with a separate deadline if need be.
        batch_id: the batch that uses the files.
        concurrent: how many requests run at a time, if there are many.
    """

    def __init__(self, project: WebRpcs, batch_id: int, concurrent: int) -> None:
        self._project = project
        self._batch_id = batch_id
        self._concurrent = concurrent

    def associate(self, names: Sequence[str], *, mixed: bool = False) -> list[str]:
        """Associate those of ``names`` that are there with the batch; return the absent ones.

        Args:
            names: physical names.
            mixed: whether some of them, anywhere in the list, are known to be associated already.

        Raises:
            RpcError: see :meth:`WebRpcs.query_files`.
        """
        return [name for part in _parts(names) for name in self._associate(part, mixed=mixed)]

    def _associate(self, names: Sequence[str], *, mixed: bool) -> list[str]:
        try:
            indices = self._project.query_files(names, batch_id=self._batch_id)
        except (PermissionDenied, ProjectDown):
            raise
        except RpcError as error:
            log.info(
                "query_files with batch %d failed (%s): it is repeated without the batch",
                self._batch_id,
                error,
            )
        else:
            return [names[index] for index in indices]
        absent = absent_names(self._project, names)
        gone = set(absent)
        self._associate_the_rest([name for name in names if name not in gone], mixed=mixed)
        return absent

    def _associate_the_rest(self, names: Sequence[str], *, mixed: bool) -> None:
        """Make the associations that a failed query_files did not get to.

        No RPC tells which ones exist already; only a request for a single file tells that for this
        file. Nearly always an earlier attempt has made all of them, or those at the list's front,
        because it has associated the files that it sent; so that is tried first. Files that another
        batch has brought meanwhile may hide among many such ones; they stay until their own
        delete_time.
        """
        if len(names) > _FEW and not mixed:
            rest = names[self._first_new(names) + 1 :]
            if not rest or self._is_new(rest):
                return
        log.info("Batch %d: %d files are associated one by one", self._batch_id, len(names))
        in_parallel(
            lambda name: self._is_new([name]), names, threads=self._concurrent, name="associate"
        )

    def _first_new(self, names: Sequence[str]) -> int:
        """Return how many files at the front are associated already, by halving.

        The next file is associated on the way.
        """
        low, high = 0, len(names)
        while low < high:
            middle = (low + high) // 2
            if self._is_new(names[middle : middle + 1]):
                high = middle
            else:
                low = middle + 1
        return low

    def _is_new(self, names: Sequence[str]) -> bool:
        """Associate ``names``; return False if one of them was already."""
        try:
            self._project.query_files(names, batch_id=self._batch_id)
        except (PermissionDenied, ProjectDown):
            raise
        except TransportError as error:
            if error.status != 500:
                raise
            return False
        except (ProjectError, ProtocolError):
            return False
        return True


def _parts(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), _NAMES_PER_QUERY):
        yield names[start : start + _NAMES_PER_QUERY]
