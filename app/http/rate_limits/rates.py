"""Rate limits: requests by key, and failed sign-ins by IP address.

Responses state the limit of a key in the headers ``RateLimit-Policy`` and ``RateLimit`` of
draft-ietf-httpapi-ratelimit-headers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import Scope

from app.errors import RateLimited
from app.http.middleware.addresses import TrustedProxies
from app.http.rate_limits.rate_windows import Rate, Windows, WindowState


class TooMany(RateLimited):
    """The window is full. ``Retry-After`` states the seconds to wait."""

    def __init__(self, state: WindowState, headers: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.headers = {**(headers or {}), "Retry-After": str(max(1, math.ceil(state.reset_seconds)))}


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The rates of requests by key and of failed sign-ins by IP address."""

    windows: Windows
    requests: Rate
    failed_sign_ins: Rate
    proxies: TrustedProxies

    def request(self, caller_id: str, count: int = 1) -> Mapping[str, str]:
        """Count ``count`` requests of this caller, and return the RateLimit headers.

        At most, they count as one less than the limit. So a call with a large ``count`` succeeds in an empty window.

        Raises:
            TooMany: the window is full.
        """
        state = self.windows.hit(f"request:{caller_id}", self.requests, min(count, max(1, self.requests.amount - 1)))
        headers = _headers(self.requests, state)
        if not state.allowed:
            raise TooMany(state, headers)
        return headers

    def failed_sign_in(self, scope: Scope) -> None:
        """Count a failed sign-in for the client's address. Requests with valid keys are not limited by it.

        Raises:
            TooMany: the window is full.
        """
        state = self.windows.hit(f"failed-sign-in:{self.proxies.client(scope)}", self.failed_sign_ins)
        if not state.allowed:
            raise TooMany(state)


def _headers(rate: Rate, state: WindowState) -> dict[str, str]:
    return {
        "RateLimit-Policy": f'"key";q={rate.amount};w={rate.seconds}',
        "RateLimit": f'"key";r={state.remaining};t={math.ceil(state.reset_seconds)}',
    }
