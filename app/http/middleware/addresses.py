"""Checks of the Host header, and the address of the client behind trusted proxies."""

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
    """The allowed values of the Host header. The check protects against DNS rebinding.

    Besides ``names``, loopback names are allowed, and the local address of the connection. Health probes may use any
    name.
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
    """Proxies whose ``X-Forwarded-For`` header is trusted."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @classmethod
    def of(cls, networks: Iterable[str]) -> "TrustedProxies":
        """Parse networks such as ``10.0.0.0/8``.

        Raises:
            ValueError: for text that is not a network.
        """
        return cls(tuple(ip_network(network) for network in networks))

    def client(self, scope: Scope) -> str:
        """Return the nearest address that is not a trusted proxy's.

        Of an IPv6 address it is the /64 network, because one client usually controls all of it.
        """
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
    """Normalise a host name: lower case, without port, brackets and the dot at the end."""
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
