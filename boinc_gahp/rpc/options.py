"""Options for the connections to a project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from boinc_gahp._version import __version__

if TYPE_CHECKING:
    from typing_extensions import Self

    from boinc_gahp.config.settings import ProjectSettings, Settings


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """Time-outs (seconds), certificates, proxy, connections.

    Attributes:
        connect_timeout: for making a connection, including name look-up and TLS.
        read_timeout: the longest silence while waiting for a reply, and while sending one block of
            a request.
        reply_timeout: for receiving the whole reply of an RPC after its first byte; does not apply
            to outputs.
        output_rate: the lowest allowed bytes per second of a reply or an output; 0: any.
        rate_span: seconds of waiting for bytes over which the rate is measured.
        retry_total: for all attempts of an RPC that may be repeated.
        ca_bundle: a PEM file to check certificates with; None: the system's.
        proxy: a proxy's URL; None: the usual variables (``HTTPS_PROXY``, ``NO_PROXY``, ...).
        pool_size: how many connections are kept alive.
        user_agent: the User-Agent sent to the web server.
    """

    connect_timeout: float = 10.0
    read_timeout: float = 120.0
    retry_total: float = 120.0
    ca_bundle: str | None = None
    proxy: str | None = None
    pool_size: int = 40
    user_agent: str = f"boinc_gahp/{__version__}"
    reply_timeout: float = 600.0
    output_rate: float = 1000.0
    rate_span: float = 60.0

    @classmethod
    def of(cls, settings: Settings, project: ProjectSettings) -> Self:
        """Return the options that the settings give for a project."""
        return cls(
            connect_timeout=settings.timeouts.connect,
            read_timeout=settings.timeouts.read,
            retry_total=settings.timeouts.retry,
            output_rate=settings.timeouts.output_rate,
            ca_bundle=project.ca_bundle,
            proxy=project.proxy,
            pool_size=settings.limits.workers + settings.limits.control_workers,
        )

    @classmethod
    def for_people(
        cls,
        settings: Settings,
        project: ProjectSettings | None,
        *,
        read: float = 30.0,
        retry: float = 5.0,
    ) -> Self:
        """Return options for somebody who waits, and can try again: with short time limits.

        Args:
            settings: all settings; shorter time limits in them are kept.
            project: the project, for its certificates and proxy; None: it is not in the settings.
            read: the longest silence.
            retry: for all attempts.
        """
        return cls(
            connect_timeout=min(settings.timeouts.connect, 10.0),
            read_timeout=min(settings.timeouts.read, read),
            retry_total=min(settings.timeouts.retry, retry),
            ca_bundle=None if project is None else project.ca_bundle,
            proxy=None if project is None else project.proxy,
        )
