"""A stand-in for a project that answers from memory, so that only the client's speed counts.

As a program, it prints its URL and serves until its input ends. ``/stats`` returns the number of
requests, ``/latency?seconds=S`` delays answers to RPCs, ``/seed?…`` makes a batch,
``/jobs?batch=B`` or ``/jobs?app=A`` returns the number of jobs of a batch or an app,
``/status?word=W`` sets the status of all jobs. ``/record`` begins a record of the requests,
``/recorded?path=P`` ends it, writes it to a file and returns the number of requests by RPC,
``/restore`` puts the project back to where the record began, so that the same requests can be made
again.
"""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import pickle
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from scripts.benchmarks.floor import Recorded
from scripts.benchmarks.project import Answer, Project, request_document

if TYPE_CHECKING:
    from collections.abc import Generator

#: The part of an upload that has the request document; of the files after it only the size counts.
_KEPT_OF_UPLOAD = 1 << 20
#: Shorter replies are not worth gzip.
_GZIP_FROM = 2000


class Server:
    """The state that the connections share."""

    def __init__(self) -> None:
        self.project = Project(output=b"The output of a job.\n" * 100)
        self.latency = 0.0
        self.bytes_in = 0
        self._zipped: dict[bytes, bytes] = {}
        self._record: list[Recorded] | None = None
        self._before = (self.project, self._zipped)

    def control(self, target: str) -> Answer | None:
        """Answer the benchmarks' own requests."""
        url = urlsplit(target)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        told: object = {}
        match url.path:
            case "/stats":
                told = {"rpcs": self.project.counts, "bytes_in": self.bytes_in}
            case "/latency":
                self.latency = float(query["seconds"])
            case "/seed":
                self.project.seed(query["batch"], int(query["jobs"]), query["app"])
            case "/status":
                self.project.set_status(query["word"])
            case "/record":
                self._record = []
                self._before = copy.deepcopy(self.project), dict(self._zipped)
            case "/recorded":
                record, self._record = self._record or [], None
                Path(query["path"]).write_bytes(pickle.dumps(record))
                told = Counter(each.rpc for each in record)
            case "/restore":
                self.project, self._zipped = self._before
            case "/jobs" if "app" in query:
                told = self.project.app_count(query["app"])
            case "/jobs":
                told = self.project.job_count(query["batch"])
            case _:
                return None
        return Answer(json.dumps(told).encode(), "application/json")

    def note(self, request: Recorded) -> None:
        """Add a request to the record, if one is being made."""
        if self._record is not None:
            self._record.append(request)

    def zipped(self, body: bytes) -> bytes:
        """Return ``body`` gzipped; bodies are kept, because long ones are requested repeatedly."""
        if body not in self._zipped:
            if len(self._zipped) > 8:
                self._zipped.clear()
            self._zipped[body] = gzip.compress(body, 5)
        return self._zipped[body]


class Connection(asyncio.Protocol):
    """One client's connection: requests in, replies out, in order."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        self._steps = self._run()
        next(self._steps)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where replies go."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Take the next bytes."""
        self._server.bytes_in += len(data)
        self._data += data
        next(self._steps)

    def _run(self) -> Generator[None, None, None]:
        """Deal with one request after the other; yield for more bytes."""
        while True:
            while (end := self._data.find(b"\r\n\r\n")) < 0:
                yield
            first, *lines = bytes(self._data[:end]).decode("latin-1").split("\r\n")
            del self._data[: end + 4]
            method, target, _ = first.split(" ")
            headers = {
                name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
            }
            if "expect" in headers and self._transport:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            body, length = yield from self._body(headers)
            self._answer(method, target, headers, body, length)

    def _body(self, headers: dict[str, str]) -> Generator[None, None, tuple[bytes, int]]:
        """Return what is kept of the body, and how long it was."""
        if headers.get("transfer-encoding") == "chunked":
            kept_of_chunks = yield from self._chunked()
            return kept_of_chunks, len(kept_of_chunks)
        length = left = int(headers.get("content-length", 0))
        keep = left if left < 2 * _KEPT_OF_UPLOAD * 10 else _KEPT_OF_UPLOAD
        kept = bytearray()
        while left:
            piece = self._data[:left]
            del self._data[: len(piece)]
            left -= len(piece)
            kept += piece[: max(0, keep - len(kept))]
            if left:
                yield
        return bytes(kept), length

    def _chunked(self) -> Generator[None, None, bytes]:
        kept = bytearray()
        while True:
            while (end := self._data.find(b"\r\n")) < 0:
                yield
            size = int(self._data[:end], 16)
            while len(self._data) < end + 2 + size + 2:
                yield
            if len(kept) < _KEPT_OF_UPLOAD:
                kept += self._data[end + 2 : end + 2 + size]
            del self._data[: end + 2 + size + 2]
            if not size:
                return bytes(kept)

    def _answer(
        self, method: str, target: str, headers: dict[str, str], body: bytes, length: int
    ) -> None:
        server = self._server
        answer = server.control(target)
        latency = 0.0
        content_type = headers.get("content-type", "")
        encodings = headers.get("accept-encoding", "")
        if answer is None:
            latency = server.latency
            if method == "POST":
                answer = server.project.rpc(request_document(content_type, body))
            else:
                answer = server.project.output(target)
            sent = {"Content-Type": content_type, "Accept-Encoding": encodings}
            server.note(Recorded(answer.rpc, method, target, sent, body, length))
        head = [f"Content-Type: {answer.content_type}", *answer.headers]
        payload = answer.body
        if "gzip" in encodings and len(payload) > _GZIP_FROM and "xml" in answer.content_type:
            payload = server.zipped(payload)
            head.append("Content-Encoding: gzip")
        head.append(f"Content-Length: {len(payload)}")
        reply = "\r\n".join(["HTTP/1.1 200 OK", *head, "", ""]).encode() + payload
        if latency:
            asyncio.get_running_loop().call_later(latency, self._send, reply)
        else:
            self._send(reply)

    def _send(self, reply: bytes) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.write(reply)


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    state = Server()
    server = await loop.create_server(lambda: Connection(state), "127.0.0.1", 0, backlog=1024)
    host, port = server.sockets[0].getsockname()
    print(f"http://{host}:{port}/bench/", flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
