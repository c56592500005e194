"""Fetches files from other web servers once, to learn their sizes and MD5s; keeps none of them.

Volunteers fetch such a file themselves, and refuse it if it differs from what the project says. So
it is fetched here as a volunteer would: without any account, following redirects.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import requests
import urllib3

from boinc_gahp.api.types import RemoteFile
from boinc_gahp.backoff import Backoff
from boinc_gahp.errors import StagingError
from boinc_gahp.rpc import FOREIGN, ClientOptions, HttpRequest, HttpTransport, TimeLimits, chain
from boinc_gahp.secret import hide_logins
from boinc_gahp.submit import Progress
from boinc_gahp.text import quoted, shorten
from boinc_gahp.threads import in_parallel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boinc_gahp.config import ProjectSettings, Timeouts
    from boinc_gahp.rpc import HttpReply
    from boinc_gahp.submit import OnProgress

#: Retries are shown to people who wait; see ``boinc_gahp.rpc.retry``.
log = logging.getLogger("boinc_gahp.rpc.retry.files")

#: Files that are fetched at a time.
_THREADS = 4
#: The same limit as for the project's own addresses.
_REDIRECTS = 5
#: The most digits of a file size.
_DIGITS = 19
#: How often a file is tried while the failure may be passing.
_ATTEMPTS = 3
_BACKOFF = Backoff(1.0)
#: A file server must answer sooner than a project, which may be computing.
_SILENCE = 30.0


class _Passing(Exception):
    """A failure that may pass soon; holds its description."""


def measure(
    urls: Sequence[str],
    project_settings: ProjectSettings,
    timeouts: Timeouts,
    progress: OnProgress | None = None,
    closing_down: threading.Event | None = None,
) -> Mapping[str, RemoteFile]:
    """Return the files behind http(s) URLs with their sizes and MD5s, each fetched once.

    Args:
        urls: the URLs, without duplicates.
        project_settings: its proxy is used; its certificates only for the project's own host.
        timeouts: for a connection, and for silence (at most 30 s); a whole file has no limit.
        progress: called with the bytes received (step ``reading``).
        closing_down: set from outside to stop early.

    Raises:
        StagingError: a file cannot be fetched unchanged: gives the URL, the reply and the remedy.
    """
    return _Measuring(project_settings, timeouts, progress, closing_down).run(urls)


class _Measuring:
    def __init__(
        self,
        project_settings: ProjectSettings,
        timeouts: Timeouts,
        progress: OnProgress | None,
        closing_down: threading.Event | None,
    ) -> None:
        self._host = urlsplit(project_settings.url).hostname
        self._connect_timeout = timeouts.connect
        self._limits = TimeLimits(min(timeouts.read, _SILENCE))
        proxy = project_settings.proxy
        ca_bundle = project_settings.ca_bundle
        self._of_project = HttpTransport(ClientOptions(ca_bundle=ca_bundle, proxy=proxy))
        # Not the system's certificates: volunteers may have fewer.
        ca_bundle = requests.utils.DEFAULT_CA_BUNDLE_PATH
        self._of_others = HttpTransport(ClientOptions(ca_bundle=ca_bundle, proxy=proxy))
        self._progress = progress
        self._stop = threading.Event()
        self._closing_down = closing_down or threading.Event()
        self._lock = threading.Lock()
        self._done: dict[str, int] = {}
        self._expected: dict[str, int] = {}

    def run(self, urls: Sequence[str]) -> Mapping[str, RemoteFile]:
        try:
            return dict(
                in_parallel(self._measured, urls, threads=_THREADS, name="measure", stop=self._stop)
            )
        finally:
            self._stop.set()  # after an interruption no thread goes on fetching
            self._of_project.close()
            self._of_others.close()

    def _measured(self, url: str) -> RemoteFile:
        said = "it was not fetched"
        for attempt in range(_ATTEMPTS):
            if attempt and not _BACKOFF.wait(attempt - 1, stop=self._stop):
                break
            try:
                return self._fetched(url)
            except _Passing as trouble:
                said = str(trouble)
                if attempt + 1 < _ATTEMPTS and not self._stop.is_set():
                    log.debug("remote file %s: %s; trying again", _shown(url), said)
        raise StagingError(
            f"remote file {_shown(url)}: {said}; submit again when its server provides it, or "
            "upload the file from this machine",
            path=url,
        )

    def _fetched(self, url: str) -> RemoteFile:
        digest = hashlib.md5(usedforsecurity=False)
        nbytes = 0
        with closing(self._answer(url)) as reply:
            encoded = "Content-Encoding" in reply.headers
            length = reply.headers.get("Content-Length", "")
            is_number = length.isascii() and length.isdigit() and len(length) < _DIGITS
            expected = int(length) if is_number else None
            self._tell(url, 0, 0 if expected is None or encoded else expected)
            for chunk in _chunks(reply, url):
                digest.update(chunk)
                nbytes += len(chunk)
                self._tell(url, nbytes)
                if self._stop.is_set() or self._closing_down.is_set():
                    self._stop.set()
                    raise _Passing("it was interrupted")
        if expected is not None and not encoded and nbytes != expected:
            raise _Passing(f"{nbytes} bytes came, but its server announced {expected}")
        return RemoteFile(url, nbytes, digest.hexdigest())

    def _answer(self, url: str) -> HttpReply:
        """Return the beginning of the reply, after redirects."""
        at = url
        for _ in range(_REDIRECTS + 1):
            reply = self._asked(at)
            if reply.status == requests.codes.ok:
                return reply
            with closing(reply):
                at = self._next(url, at, reply)
        raise StagingError(
            f"remote file {_shown(url)}: its server redirects {_REDIRECTS} times or more: give "
            "the file's final URL",
            path=url,
        )

    def _asked(self, url: str) -> HttpReply:
        try:
            own = urlsplit(url).hostname == self._host
            return (self._of_project if own else self._of_others).send(
                HttpRequest("GET", url, self._connect_timeout, self._limits, plain=True)
            )
        except FOREIGN as error:
            raise _explained(url, error) from error

    def _next(self, url: str, at: str, reply: HttpReply) -> str:
        """Return where a redirect leads; never from https to http."""
        status = f"HTTP {reply.status} {reply.reason}".rstrip()
        if reply.status >= 500 or reply.status == requests.codes.too_many:
            raise _Passing(f"its server answered {status}")
        location = reply.headers.get("Location", "")
        scheme = ""
        with suppress(ValueError):  # not an address
            location = urljoin(at, location)
            scheme = urlsplit(location).scheme
        if reply.status not in {301, 302, 303, 307, 308} or location == at:
            raise StagingError(
                f"remote file {_shown(url)}: its server answered {status}: check the URL; "
                "volunteers have to be able to fetch it without an account",
                path=url,
            )
        if scheme not in {"http", "https"} or (at.startswith("https:") and scheme == "http"):
            raise StagingError(
                f"remote file {_shown(url)}: its server redirects to {_shown(location)}, which is "
                "not followed: give a URL that leads to the file by http or https, and not from "
                "https to http",
                path=url,
            )
        return location

    def _tell(self, url: str, done: int, expected: int | None = None) -> None:
        if self._progress is None:
            return
        with self._lock:
            self._done[url] = done
            if expected is not None:
                self._expected[url] = expected
            total = sum(max(self._expected[each], self._done[each]) for each in self._done)
            self._progress(Progress("reading", sum(self._done.values()), total, "bytes"))


def _chunks(reply: HttpReply, url: str) -> Iterator[bytes]:
    try:
        yield from reply.chunks()
    except FOREIGN as error:
        raise _explained(url, error) from error


def _explained(url: str, error: BaseException) -> _Passing | StagingError:
    links = chain(error)
    words = next((str(getattr(x, "strerror", None) or x) for x in reversed(links)), "")
    why = hide_logins(shorten(words, 200))
    if any(isinstance(link, urllib3.exceptions.SSLError) for link in links):
        return StagingError(
            f"remote file {_shown(url)}: its server's certificate is not trusted ({why}): "
            "volunteers would not fetch it either; its admin has to fix that",
            path=url,
        )
    if any(isinstance(link, (requests.exceptions.InvalidURL, UnicodeError)) for link in links):
        return StagingError(
            f"remote file {_shown(url)}: this URL cannot be used ({why}): correct it",
            path=url,
        )
    if any(isinstance(link, TimeoutError) for link in links):
        return _Passing("its server did not answer, or stopped sending")
    if any(isinstance(link, urllib3.exceptions.IncompleteRead) for link in links):
        return _Passing("its server closed the connection too early")
    return _Passing(f"its server cannot be reached, or closed the connection ({why})")


def _shown(url: str) -> str:
    return quoted(hide_logins(url), 200)
