"""Retry policy: which errors are retried, and after which delay."""

import secrets
from dataclasses import dataclass

from corevault._arguments import require_whole_number
from corevault.errors import (
    ApiError,
    DependencyUnavailable,
    IdempotencyInProgress,
    RateLimited,
)

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 8.0
_LONGEST_RETRY_AFTER_SECONDS = 60.0  # a longer one is left to the caller


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most ``max_retries`` retries, with exponential back-off times a random factor in [0.5, 1]."""

    max_retries: int = 2

    def __post_init__(self) -> None:
        require_whole_number(self.max_retries, "max_retries", lower=0)

    def delay_after_failure(self, attempt: int) -> float | None:
        """Seconds to wait after a failed connection; None to give up. ``attempt`` counts from 0."""
        return None if attempt >= self.max_retries else back_off(attempt)

    def delay_after_error(self, attempt: int, error: ApiError) -> float | None:
        """Seconds to wait after an error answer; None to give up.

        ``idempotency_in_progress`` is retried: it is the answer to a retry while the first request is still running.
        """
        if attempt >= self.max_retries:
            return None
        if not isinstance(error, RateLimited | DependencyUnavailable | IdempotencyInProgress):
            return None
        if error.retry_after is None:
            return back_off(attempt)
        return error.retry_after if error.retry_after <= _LONGEST_RETRY_AFTER_SECONDS else None


def back_off(attempt: int) -> float:
    """Seconds to wait before retry ``attempt``, which counts from 0."""
    ceiling = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0**attempt)
    return ceiling * (0.5 + 0.5 * secrets.randbelow(1001) / 1000)


def parse_retry_after(header: str | None) -> float | None:
    """The whole seconds of a ``Retry-After`` header; None for any other form of it."""
    return float(header) if header is not None and header.isascii() and header.isdigit() else None
