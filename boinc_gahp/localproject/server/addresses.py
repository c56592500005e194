"""The host names by which clients may address a project.

A site's owner can let its name point to this machine. To a browser, what answers here then has the
same origin as the site's pages, and these may read it. But then the Host header has that name.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

HOST = "127.0.0.1"

if TYPE_CHECKING:
    from collections.abc import Iterable


def _is_address(name: str, *, anywhere: bool = False) -> bool:
    """Whether a name is a loopback address, which other machines cannot reach, or any address."""
    try:
        return ip_address(name).is_loopback or anywhere
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class HostNames:
    """Names of a project; its loopback addresses, or all addresses, count too: nobody owns them."""

    names: frozenset[str] = frozenset({"localhost"})
    all_addresses: bool = False

    def __contains__(self, name: str) -> bool:
        plain = name.lower().rstrip(".")
        return plain in self.names or _is_address(plain, anywhere=self.all_addresses)


def names_of(listen: str, more: Iterable[str] = ()) -> HostNames:
    """Return the names of a project that listens on ``listen``; ``more`` are further ones.

    If other machines can reach it, it answers to all addresses and to the machine's names.
    """
    names = {"localhost", *(name.lower().rstrip(".") for name in (listen, *more))}
    if listen == "localhost" or _is_address(listen):
        return HostNames(frozenset(names))
    names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return HostNames(frozenset(names - {""}), all_addresses=True)


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free now."""
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
