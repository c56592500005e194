"""Files on other web servers, fetched once to learn their size and MD5; nothing of them is kept.

Volunteers fetch such a file themselves, and refuse it if it is not as the project says. So what is
measured is what the server gives to somebody like them: without any account, after redirects.
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

from boinc_gahp.backoff import Backoff
from boinc_gahp.bridge import Progress
from boinc_gahp.bridge.parallel import in_parallel
from boinc_gahp.errors import StagingError
from boinc_gahp.remote.types import RemoteFile
from boinc_gahp.rpc.border import chain
from boinc_gahp.rpc.options import ClientOptions
from boinc_gahp.rpc.redact import guard_library_logs
from boinc_gahp.secret import hide_logins
from boinc_gahp.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from boinc_gahp.bridge import OnProgress
    from boinc_gahp.config import ProjectSettings, Timeouts

#: People who wait are told what is tried again; see ``boinc_gahp.rpc.retry``.
log = logging.getLogger("boinc_gahp.rpc.retry.files")

#: Files that are fetched at a time.
_THREADS = 4
#: As many as the project's own addresses may have.
_REDIRECTS = 5
_CHUNK = 1 << 18
#: Of a number of bytes that any disk may hold.
_DIGITS = 19
#: Each file is tried so often while the trouble looks passing.
_ATTEMPTS = 3
_BACKOFF = Backoff(1.0)
#: A web server that gives files is not waited for as long as a project that may be computing.
_SILENCE = 30.0

_FOREIGN = (requests.RequestException, urllib3.exceptions.HTTPError, OSError, UnicodeError)


class _Passing(Exception):
    """Trouble that may be over soon; holds the words for it."""


def measure(
    urls: Sequence[str],
    project_settings: ProjectSettings,
    timeouts: Timeouts,
    progress: OnProgress | None = None,
    closing_down: threading.Event | None = None,
) -> Mapping[str, RemoteFile]:
    """Return the files behind http(s) URLs with their sizes and MD5s, each fetched once.

    Args:
        urls: each once.
        project_settings: whose proxy is used; whose certificates are, for the project's own host.
        timeouts: for a connection, and for silence (at most 30 s); there is no limit for a whole
            file.
        progress: told the bytes that have come (step ``reading``).
        closing_down: is set from outside to end it early.

    Raises:
        StagingError: a file cannot be fetched as it is: says its URL, what came, what to do.
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
        guard_library_logs()
        self._settings = project_settings
        self._timeouts = (timeouts.connect, min(timeouts.read, _SILENCE))
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
            self._stop.set()  # whoever was interrupted leaves nobody fetching

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
            f"remote file {_shown(url)}: {said}; submit again when its server gives it, or stage "
            "the file from here",
            path=url,
        )

    def _fetched(self, url: str) -> RemoteFile:
        digest = hashlib.md5(usedforsecurity=False)
        nbytes = 0
        with closing(_session()) as session:
            response = self._answer(session, url)
            encoded = "Content-Encoding" in response.headers
            length = response.headers.get("Content-Length", "")
            is_number = length.isascii() and length.isdigit() and len(length) < _DIGITS
            expected = int(length) if is_number else None
            self._tell(url, 0, 0 if expected is None or encoded else expected)
            with closing(response):
                for chunk in _chunks(response):
                    digest.update(chunk)
                    nbytes += len(chunk)
                    self._tell(url, nbytes)
                    if self._stop.is_set() or self._closing_down.is_set():
                        self._stop.set()
                        raise _Passing("broken off")
        if expected is not None and not encoded and nbytes != expected:
            raise _Passing(f"{nbytes} bytes came where its server announced {expected}")
        return RemoteFile(url, nbytes, digest.hexdigest())

    def _answer(self, session: requests.Session, url: str) -> requests.Response:
        """Return the beginning of the answer, redirects followed."""
        at = url
        for _ in range(_REDIRECTS + 1):
            response = self._asked(session, at)
            if response.status_code == requests.codes.ok:
                return response
            with closing(response):
                at = self._next(url, at, response)
        raise StagingError(
            f"remote file {_shown(url)}: its server redirects {_REDIRECTS} times and more: give "
            "the URL that the file has in the end",
            path=url,
        )

    def _asked(self, session: requests.Session, url: str) -> requests.Response:
        proxy = self._settings.proxy
        own = urlsplit(url).hostname == urlsplit(self._settings.url).hostname
        try:
            prepared = session.prepare_request(requests.Request("GET", url))
            # Not the session's own send, which reads a redirect's body, however long it is.
            return session.get_adapter(url).send(
                prepared,
                stream=True,
                timeout=self._timeouts,
                verify=(self._settings.ca_bundle if own else None) or True,
                proxies={"http": proxy, "https": proxy}
                if proxy
                else dict(requests.utils.get_environ_proxies(url, no_proxy=None)),
            )
        except _FOREIGN as error:
            raise _explained(url, error) from error

    def _next(self, url: str, at: str, response: requests.Response) -> str:
        """Return where a redirect leads; never from https to http."""
        status = f"HTTP {response.status_code} {response.reason or ''}".rstrip()
        if response.status_code >= 500 or response.status_code == requests.codes.too_many:
            raise _Passing(f"its server answered {status}")
        location = response.headers.get("Location", "")
        scheme = ""
        with suppress(ValueError):  # an address that is none
            location = urljoin(at, location)
            scheme = urlsplit(location).scheme
        if response.status_code not in {301, 302, 303, 307, 308} or location == at:
            raise StagingError(
                f"remote file {_shown(url)}: its server answered {status}: check the URL; "
                "volunteers have to be able to fetch it without an account",
                path=url,
            )
        if scheme not in {"http", "https"} or (at.startswith("https:") and scheme == "http"):
            raise StagingError(
                f"remote file {_shown(url)}: its server sends on to {_shown(location)}, which is "
                "not followed: give a URL that leads to the file by http or https, and from https "
                "not to http",
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


def _session() -> requests.Session:
    session = requests.Session()
    # No netrc and no certificates from the environment: volunteers have neither.
    session.trust_env = False
    session.headers["User-Agent"] = ClientOptions().user_agent
    session.headers["Accept-Encoding"] = "identity"
    return session


def _chunks(response: requests.Response) -> Iterator[bytes]:
    try:
        yield from response.raw.stream(_CHUNK, decode_content=True)
    except _FOREIGN as error:
        raise _explained(response.url, error) from error


def _explained(url: str, error: BaseException) -> _Passing | StagingError:
    links = chain(error)
    words = next((str(getattr(x, "strerror", None) or x) for x in reversed(links)), "")
    why = hide_logins(shorten(words, 200))
    if any(isinstance(link, requests.exceptions.SSLError) for link in links):
        return StagingError(
            f"remote file {_shown(url)}: its server's certificate is not trusted ({why}): "
            "volunteers would not fetch it either; its admin has to mend that",
            path=url,
        )
    if any(isinstance(link, (requests.exceptions.InvalidURL, UnicodeError)) for link in links):
        return StagingError(
            f"remote file {_shown(url)}: that is no URL that can be asked ({why}): correct it",
            path=url,
        )
    if any(isinstance(link, TimeoutError) for link in links):
        return _Passing("its server did not answer, or fell silent")
    if any(isinstance(link, urllib3.exceptions.IncompleteRead) for link in links):
        return _Passing("its server broke off in the middle")
    return _Passing(f"its server cannot be reached, or broke off ({why})")


def _shown(url: str) -> str:
    return repr(shorten(hide_logins(url), 200))
