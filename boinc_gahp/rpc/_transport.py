"""Sends requests: the interface, and its implementation with HTTP.

Tests give :class:`WebRpcs` their own object with a ``send`` method; then recorded replies are
handled like real ones.
"""

from __future__ import annotations

import os
import ssl
import time
from dataclasses import dataclass
from datetime import timezone
from email.utils import parsedate_to_datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from urllib3 import PoolManager, ProxyManager
from urllib3.util import Retry, Timeout, make_headers, parse_url
from urllib3.util.ssl_ import create_urllib3_context

from boinc_gahp.config.urls import is_of_this_machine
from boinc_gahp.errors import ConfigError
from boinc_gahp.rpc._limits import TIMED_POOLS, limited
from boinc_gahp.rpc._redact import guard_library_logs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from urllib3.connectionpool import HTTPConnectionPool
    from urllib3.response import BaseHTTPResponse

    from boinc_gahp.rpc._build import FormBody
    from boinc_gahp.rpc._limits import TimeLimits
    from boinc_gahp.rpc.options import ClientOptions

_CHUNK = 65536
#: rpc/retry decides what is sent again.
_NO_RETRIES = Retry(0, read=False)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request to be sent.

    Attributes:
        body: makes the body, anew each time it is sent; None for a GET.
        fresh: whether the request needs a new connection.
        plain: whether the reply must not be compressed, so that its length can be checked.
        cookie: returns the Cookie header; a function, because the cookie may be a secret.
    """

    url: str
    connect_timeout: float
    limits: TimeLimits
    body: Callable[[], FormBody] | None = None
    fresh: bool = False
    plain: bool = False
    cookie: Callable[[], str] | None = None


class HttpReply(Protocol):
    """A reply: status and headers have arrived, the body comes in chunks."""

    status: int
    reason: str
    headers: Mapping[str, str]

    @property
    def received(self) -> int:
        """How many bytes of the body have arrived, as sent on the wire."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the body, decompressed."""

    def close(self) -> None:
        """Release the connection, or close it if the body was not read to its end."""


class Transport(Protocol):
    """Sends a request and returns the beginning of the reply.

    It may raise exceptions of urllib3.
    """

    def send(self, request: HttpRequest) -> HttpReply:
        """Send ``request``; redirects are not followed."""


def odd_encoding(headers: Mapping[str, str], *, plain: bool) -> str | None:
    """Return a body's encoding if it is not allowed: only plain, or at most gzip; None if it is.

    A body can become a thousand times as long when it is decompressed.
    """
    found = headers.get("Content-Encoding", "").strip()
    allowed = {"", "identity"} if plain else {"", "identity", "gzip", "x-gzip"}
    return None if found.lower() in allowed else found


class HttpTransport:
    """Sends over HTTP, on connections that are kept alive.

    Requests go to urllib3's connection pools directly, because requests takes half of the time of a
    small request, and a third of a daemon's start until it can make one. It is only imported for
    proxies from the environment (``https_proxy``, ``NO_PROXY``, ...), which are looked up once for
    each host.

    Args:
        options: time-outs, certificates, proxy.
        clock: is told the time of each reply.

    Raises:
        ConfigError: the file with certificates does not exist.
    """

    def __init__(self, options: ClientOptions, clock: Clock | None = None) -> None:
        guard_library_logs()
        self._clock = clock
        if options.ca_bundle is not None and not Path(options.ca_bundle).exists():
            raise ConfigError(
                f"ca_bundle {options.ca_bundle!r} does not exist: expected a PEM file with the "
                "certificates of the authorities to trust"
            )
        self._options = options
        # Two threads may both make one; that only costs time.
        self._trust = cache(partial(trusted, options.ca_bundle))
        self._pools = _Pools(options, self._trust)
        self._process = os.getpid()

    def send(self, request: HttpRequest) -> HttpReply:
        """Send ``request``; return the reply as soon as its headers have arrived."""
        if os.getpid() != self._process:
            # A child would read the replies to its parent's requests.
            self._pools, self._process = _Pools(self._options, self._trust), os.getpid()
        pools = _Pools(self._options, self._trust) if request.fresh else self._pools
        only_here = pools if request.fresh else None
        body: FormBody | None = None
        began = _uptime()
        try:
            pool = pools.pool(request.url)
            headers = {
                "User-Agent": self._options.user_agent,
                "Accept": "*/*",
                "Accept-Encoding": "identity" if request.plain else "gzip",
                "Connection": "close" if request.fresh else "keep-alive",
            }
            if request.cookie is not None:
                headers["Cookie"] = request.cookie()
            if request.body is not None:
                body = request.body()
                headers["Content-Type"] = body.content_type
                headers["Content-Length"] = str(body.len)
            with limited(request.limits):
                response = pool.urlopen(
                    "GET" if request.body is None else "POST",
                    _target(request.url, pool),
                    body=body,
                    headers=headers,
                    retries=_NO_RETRIES,
                    redirect=False,
                    assert_same_host=False,
                    timeout=Timeout(connect=request.connect_timeout, read=request.limits.silence),
                    preload_content=False,
                    decode_content=False,
                )
        except BaseException:
            if only_here is not None:
                only_here.close()
            raise
        finally:
            if body is not None:
                body.close()
        if self._clock is not None:
            self._clock.hear(response.headers.get("Date"), began)
        return _Reply(response, only_here)

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._pools.close()


class _Reply:
    """A reply of urllib3, whose body is read as it arrives."""

    def __init__(self, response: BaseHTTPResponse, pools: _Pools | None) -> None:
        self.status = response.status
        self.reason = response.reason or ""
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._pools = pools
        self._ended = False

    @property
    def received(self) -> int:
        return int(self._response.tell())

    def chunks(self) -> Iterator[bytes]:
        yield from self._response.stream(_CHUNK, decode_content=True)
        self._ended = True

    def close(self) -> None:
        if not self._ended and self._response.connection is not None:
            self._response.connection.close()
        self._response.close()
        self._response.release_conn()
        if self._pools is not None:
            self._pools.close()


class _Pools:
    """The connections of each host, which obey :mod:`boinc_gahp.rpc._limits` and trust ``trust()``.

    No netrc, and no certificates from the environment.
    """

    def __init__(self, options: ClientOptions, trust: Callable[[], ssl.SSLContext]) -> None:
        self._options = options
        self._trust = trust
        # By scheme and host; those of a project are one or two.
        self._pools: dict[str, HTTPConnectionPool] = {}

    def pool(self, url: str) -> HTTPConnectionPool:
        """Return the connections to a URL's host, or to its proxy.

        Raises:
            LocationValueError: the URL of the host or of its proxy is wrong.
        """
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc}"
        found = self._pools.get(host)
        # Of what two threads make at once, both use the same.
        return self._pools.setdefault(host, self._made(url)) if found is None else found

    def _made(self, url: str) -> HTTPConnectionPool:
        proxy = self._proxy(url)
        manager: PoolManager
        if proxy is None:
            manager = PoolManager(maxsize=self._options.pool_size)
        else:
            if "://" not in proxy:
                proxy = f"http://{proxy}"
            parts = parse_url(proxy)
            manager = ProxyManager(
                proxy,
                maxsize=self._options.pool_size,
                proxy_headers=make_headers(proxy_basic_auth=parts.auth and unquote(parts.auth)),
                proxy_ssl_context=self._trust() if parts.scheme == "https" else None,
            )
        manager.pool_classes_by_scheme = TIMED_POOLS
        pool = manager.connection_from_url(url)
        if pool.scheme == "https":
            # Without it, there would be a context of urllib3's for each connection.
            pool.conn_kw["ssl_context"] = self._trust()
        return pool

    def _proxy(self, url: str) -> str | None:
        """Return the URL of the proxy through which a URL is requested, if there is one."""
        if self._options.proxy:
            return self._options.proxy
        # What this machine asks itself concerns no proxy: it may hold a password.
        if is_of_this_machine(url) or not any(
            name.lower().endswith("_proxy") for name in os.environ
        ):
            return None
        from requests import utils  # noqa: PLC0415  (takes long to import)

        return utils.select_proxy(url, utils.get_environ_proxies(url, no_proxy=None))

    def close(self) -> None:
        """Close the connections that are not in use; new ones can be made."""
        # A closed pool cannot be used any more, and another thread may be adding one.
        pools, self._pools = self._pools, {}
        for pool in list(pools.values()):
            pool.close()


def _target(url: str, pool: HTTPConnectionPool) -> str:
    """Return what a request line has for ``url``."""
    if pool.proxy is not None and url.startswith("http:"):
        return url
    # A path that begins with two slashes would be taken for a host.
    return "/" + url.split("/", 3)[3].lstrip("/")


#: Clocks that differ by less than this, in seconds, count as equal, and times are sent unchanged.
_SLACK = 60.0
#: The Date of an exchange that took longer than this, in seconds, is too inexact: some servers give
#: the time of the request, others that of the reply.
_SLOW = 10.0
#: Seconds after which the project's time must be asked for again.
_LASTS = 600.0


class Clock:
    """What is known of a project's clock; thread-safe.

    A few requests contain a time at which the project is to do something: when a batch expires, or
    when a file may be deleted. The project compares it with its own clock, and a submit node's may
    be wrong by an hour or a day, so times are converted before they are sent. The project's time is
    the ``Date`` of its replies, which web servers always send, even with a ping or an error page;
    ``server_time`` only comes with query_batch2, which is too late for a new batch's lease.
    """

    def __init__(self) -> None:
        #: The Date of a reply, and the uptime at that moment. It is read when a time is converted,
        #: which few requests need; one assignment changes it.
        self._heard: tuple[str | None, float] | None = None

    @property
    def is_known(self) -> bool:
        """Whether the project has recently told its time, or sent no time."""
        heard = self._heard
        return heard is not None and _uptime() - heard[1] < _LASTS

    def hear(self, date: str | None, began: float) -> None:
        """Take the Date of a reply that has just begun.

        Args:
            date: the header's text, None if there is none.
            began: uptime in seconds right before the request was sent.
        """
        now = _uptime()
        if now - began <= _SLOW:
            self._heard = date, (began + now) / 2

    def to_project(self, at: float) -> float:
        """Return what the project's clock shows when this machine's clock shows ``at``.

        Both are seconds since the epoch. Clocks that differ by a minute or less count as equal.
        """
        if self._heard is None:
            return at
        date, heard_at = self._heard
        stamp = _seconds(date)
        if stamp is None:
            return at
        # A Date has whole seconds, so on average half a second is lost.
        ahead = stamp + 0.5 + _uptime() - heard_at - time.time()
        return at if abs(ahead) <= _SLACK else at + ahead


def _uptime() -> float:
    """Return seconds by a clock that is never set, and that runs while the machine sleeps."""
    boottime = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boottime is None else time.clock_gettime(boottime)


def _seconds(date: str | None) -> float | None:
    """Return a Date header's time in seconds since the epoch; None if it is not a date."""
    try:
        when = parsedate_to_datetime(date or "")
        if when.tzinfo is None:
            when = when.replace(tzinfo=timezone.utc)
        return when.timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def trusted(ca_bundle: str | None) -> ssl.SSLContext:
    """Return the context of connections; all to a project share one, which takes long to make.

    Args:
        ca_bundle: a PEM file with the authorities to trust, or a directory of such; None: those of
            the system, that is of OpenSSL's own directory (``openssl version -d``), or of
            ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``. Where a Python knows of none, those of certifi.
    """
    context = create_urllib3_context()
    if ca_bundle is None:
        if _system_has_any():
            context.load_default_certs()
            return context
        from requests.utils import DEFAULT_CA_BUNDLE_PATH  # noqa: PLC0415  (of certifi)

        ca_bundle = DEFAULT_CA_BUNDLE_PATH
    is_directory = Path(ca_bundle).is_dir()
    context.load_verify_locations(
        cafile=None if is_directory else ca_bundle, capath=ca_bundle if is_directory else None
    )
    return context


def _system_has_any() -> bool:
    """Tell whether this Python's OpenSSL finds anything where it looks for authorities."""
    paths = ssl.get_default_verify_paths()
    # Each is None if there is no such file or directory.
    places = [Path(place) for place in (paths.cafile, paths.capath) if place]
    return any(place.is_file() or any(place.iterdir()) for place in places)
