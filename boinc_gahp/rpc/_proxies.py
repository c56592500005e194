"""The way through a proxy, which requests knows: variables, exceptions for hosts, logins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import LocationParseError

from boinc_gahp.rpc._limits import TIMED_POOLS

if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext

    from boinc_gahp.rpc.options import ClientOptions


class Proxies(HTTPAdapter):
    """Finds the connections of hosts that are asked through a proxy.

    Args:
        options: the proxy; None: what the environment says.
        trust: returns the context for connections to proxies.
        hosts: how many hosts' connections are kept.
    """

    def __init__(self, options: ClientOptions, trust: Callable[[], SSLContext], hosts: int) -> None:
        self._options = options
        self._trust = trust
        super().__init__(pool_connections=hosts, pool_maxsize=options.pool_size)

    def pool(self, url: str) -> tuple[Any, bool]:
        """Return a host's connections, and whether requests have to name whole URLs.

        Without a proxy for this host, there are None.

        Raises:
            LocationParseError: a URL is wrong.
        """
        proxies: dict[str, str] = {}
        if self._options.proxy:
            proxies = {"http": self._options.proxy, "https": self._options.proxy}
        else:
            proxies.update(requests.utils.get_environ_proxies(url, no_proxy=None))
        proxy = requests.utils.select_proxy(url, proxies)
        if proxy is None:
            return None, False
        if proxy.lower().startswith("socks"):
            raise LocationParseError("a SOCKS proxy, but only HTTP proxies work")
        try:
            prepared = requests.Request("GET", url).prepare()
            pool = self.get_connection_with_tls_context(prepared, True, proxies=proxies)
        except requests.RequestException as error:
            raise LocationParseError(str(error)) from None
        return pool, not self.request_url(prepared, proxies).startswith("/")

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        if proxy.startswith("https:"):
            kwargs["proxy_ssl_context"] = self._trust()
        manager = super().proxy_manager_for(proxy, **kwargs)
        manager.pool_classes_by_scheme = TIMED_POOLS
        return manager

    def build_connection_pool_key_attributes(self, *args: Any) -> Any:
        host, _ = super().build_connection_pool_key_attributes(*args)
        return host, {}


def quoted_url(url: str) -> str:
    """Return a URL with what it cannot hold quoted."""
    try:
        return str(requests.Request("GET", url).prepare().url)
    except requests.RequestException as error:
        raise LocationParseError(str(error)) from None
