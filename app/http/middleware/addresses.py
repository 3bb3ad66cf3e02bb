"""Where a request comes from, and which names it may call this server by."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from starlette.datastructures import Headers
from starlette.types import Scope

LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_PROBES: Final = frozenset({"/health/live", "/health/ready"})


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The Host header of every request names this server, or a page in a browser has been lured here by another name.

    Besides ``names``, loopback and the very address that the connection came in at are right. Probes of health may
    use any name.
    """

    names: frozenset[str]

    @classmethod
    def of(cls, names: Iterable[str]) -> "AllowedHosts":
        return cls(LOOPBACK_NAMES | {_bare(name) for name in names})

    def admits(self, scope: Scope) -> bool:
        if scope["path"] in _PROBES:
            return True
        sent = Headers(scope=scope).getlist("host")
        if len(sent) != 1:
            return False
        host = _bare(sent[0])
        server = scope.get("server")
        return host in self.names or (server is not None and host == server[0])


@dataclass(frozen=True, slots=True)
class TrustedProxies:
    """Proxies whose word on the client's address counts."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def of(cls, networks: Iterable[str]) -> "TrustedProxies":
        """
        Raises:
            ValueError: for text that is no network.
        """
        return cls(tuple(ip_network(network) for network in networks))

    def client(self, scope: Scope) -> str:
        """The nearest address that no trusted proxy has; of IPv6 the network that one client commands."""
        client = scope.get("client")
        nearest = client[0] if client else ""
        forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        while self._trusts(nearest) and forwarded:
            nearest = forwarded.pop().strip() or nearest
        return _network(nearest)

    def _trusts(self, text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in self.networks)


def _bare(host: str) -> str:
    """The name without port, brackets and the dot at its end, in lower case."""
    name = host.strip().lower()
    name = name[1:].partition("]")[0] if name.startswith("[") else _without_port(name)
    return name.removesuffix(".")


def _without_port(name: str) -> str:
    return name.partition(":")[0] if name.count(":") == 1 else name


def _network(text: str) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        return "unknown"
    if isinstance(address, IPv6Address):
        return str(ip_network((address, 64), strict=False)) if address.ipv4_mapped is None else str(address.ipv4_mapped)
    return text
