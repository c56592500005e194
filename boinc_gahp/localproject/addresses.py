"""Under which names a project may be asked.

A page of another site, at a name that its owner lets point to this machine, is for the browser of
the same origin as what answers there, and may read it. The name then stands in the Host header.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_loopback(name: str) -> bool:
    """Whether a name is an address of this machine that no other can reach."""
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class HostNames:
    """Names of a project; besides, its loopback addresses, or all addresses, which are nobody's."""

    names: frozenset[str] = frozenset({"localhost"})
    all_addresses: bool = False

    def __contains__(self, name: str) -> bool:
        plain = name.lower().rstrip(".")
        addresses = _is_address if self.all_addresses else is_loopback
        return plain in self.names or addresses(plain)


def names_of(listen: str, more: Iterable[str] = ()) -> HostNames:
    """Return the names of a project that listens on ``listen``; ``more``: what else it is called.

    One that others can reach may be asked under all addresses, and the names of the machine.
    """
    names = {"localhost", *(name.lower().rstrip(".") for name in (listen, *more))}
    if listen == "localhost" or is_loopback(listen):
        return HostNames(frozenset(names))
    names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return HostNames(frozenset(names - {""}), all_addresses=True)
