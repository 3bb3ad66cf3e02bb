"""Published rate limits: requests by key, and failed sign-ins by address.

What a key is told goes by draft-ietf-httpapi-ratelimit-headers (``RateLimit-Policy``, ``RateLimit``).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import Scope

from app.errors import RateLimited
from app.http.middleware.addresses import TrustedProxies
from app.http.rate_limits.rate_windows import Rate, Standing, Windows


class TooMany(RateLimited):
    """Says how long to wait."""

    def __init__(self, standing: Standing, headers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.headers = {**(headers or {}), "Retry-After": str(max(1, math.ceil(standing.reset_seconds)))}


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What a key may ask for, and how often an address may come with something that is no key."""

    windows: Windows
    requests: Rate
    failed_sign_ins: Rate
    proxies: TrustedProxies

    def request(self, caller_id: str) -> Mapping[str, str]:
        """Count a request of this caller; the headers that tell how it stands.

        Raises:
            TooMany: the window is full.
        """
        standing = self.windows.hit(f"request:{caller_id}", self.requests)
        headers = _headers(self.requests, standing)
        if not standing.allowed:
            raise TooMany(standing, headers)
        return headers

    def failed_sign_in(self, scope: Scope) -> None:
        """Count a credential that was none, by the client's address, which does not hold up valid keys.

        Raises:
            TooMany: the window is full.
        """
        standing = self.windows.hit(f"failed-sign-in:{self.proxies.client(scope)}", self.failed_sign_ins)
        if not standing.allowed:
            raise TooMany(standing)


def _headers(rate: Rate, standing: Standing) -> dict[str, str]:
    return {
        "RateLimit-Policy": f'"key";q={rate.amount};w={rate.seconds}',
        "RateLimit": f'"key";r={standing.remaining};t={math.ceil(standing.reset_seconds)}',
    }
