"""The floor of a benchmark: the same requests again, with http.client and nothing around them.

As a program, it sends the requests of a record to the stand-in, and prints the seconds that took.
The order is that of the record. Requests that need no other's answer go over as many kept
connections as it is told, each taking the next request when it has an answer; any other waits until
all before it are answered, and those after it wait for its answer: a batch cannot be submitted
before its files are there, nor asked for before. Answers are read, and nothing else is done with
them.
"""

from __future__ import annotations

import http.client
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BLOCK = bytes(65536)

#: RPCs that need no other's answer. Outputs do within a job, which makes no difference among many.
_INDEPENDENT = {
    "ping",
    "upload_files",
    "query_job",
    "query_completed_job",
    "result_file",
    "workunit_file",
}


@dataclass(frozen=True)
class Recorded:
    """A request as the stand-in got it.

    Attributes:
        rpc: the web RPC; for an output, the word after ``cmd=``.
        headers: those that make a difference to the answer.
        body: its beginning, if it was long; the rest is sent as zeros.
        length: that of the whole body, in bytes.
    """

    rpc: str
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    length: int

    def blocks(self) -> Iterator[bytes]:
        """Yield the body."""
        yield self.body
        left = self.length - len(self.body)
        while left > 0:
            yield _BLOCK[:left]
            left -= len(_BLOCK)


def measured(record: Path, url: str, connections: int) -> float:
    """Replay a record in a process of its own; return the seconds that the requests took.

    Raises:
        RuntimeError: a request was not answered as it should.
    """
    done = subprocess.run(
        [sys.executable, "-m", "scripts.benchmarks.floor", str(record), url, str(connections)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the floor failed: {done.stderr[-500:]}")
    return float(done.stdout)


class _Replay:
    def __init__(self, url: str, connections: int) -> None:
        netloc = urlsplit(url).netloc
        self._idle = [http.client.HTTPConnection(netloc) for _ in range(connections)]
        self._lock = threading.Lock()
        self._failed: list[BaseException] = []

    def send(self, requests: Sequence[Recorded]) -> None:
        """Send requests over all connections, and wait for the answers."""
        left = iter(requests)
        threads = [
            threading.Thread(target=self._work, args=(connection, left))
            for connection in self._idle[: len(requests)]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._failed:
            raise self._failed[0]

    def _work(self, connection: http.client.HTTPConnection, left: Iterator[Recorded]) -> None:
        try:
            while (request := self._next(left)) is not None:
                _exchange(connection, request)
        except (OSError, http.client.HTTPException, RuntimeError) as error:
            self._failed.append(error)

    def _next(self, left: Iterator[Recorded]) -> Recorded | None:
        with self._lock:
            return next(left, None)


def _exchange(connection: http.client.HTTPConnection, request: Recorded) -> None:
    headers = {name: value for name, value in request.headers.items() if value}
    if request.length > len(request.body):
        headers["Content-Length"] = str(request.length)
        connection.request(request.method, request.target, request.blocks(), headers)
    else:
        connection.request(request.method, request.target, request.body or None, headers)
    response = connection.getresponse()
    response.read()
    if response.status != 200:
        raise RuntimeError(f"{request.rpc} was answered {response.status}")


def _main() -> None:
    record, url, connections = sys.argv[1:]
    # The stand-in wrote it.
    requests: list[Recorded] = pickle.loads(Path(record).read_bytes())
    # The numbers of those that are to be alone, which are all different, and None for the others.
    alone = (None if each.rpc in _INDEPENDENT else i for i, each in enumerate(requests))
    numbered = zip(alone, requests, strict=True)
    groups = [[each for _, each in group] for _, group in groupby(numbered, itemgetter(0))]
    replay = _Replay(url, int(connections))
    began = time.perf_counter()
    for group in groups:
        replay.send(group)
    print(time.perf_counter() - began)


if __name__ == "__main__":
    _main()
