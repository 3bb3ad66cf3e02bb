"""When a call is repeated, and after how long."""

import secrets
from dataclasses import dataclass

from corevault._arguments import what_came
from corevault.errors import (
    ApiError,
    DependencyUnavailable,
    IdempotencyInProgress,
    InvalidArgument,
    RateLimited,
    WrongType,
)

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 8.0
_PATIENCE_SECONDS = 60.0  # a longer Retry-After is the caller's to wait for


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most ``max_retries`` repetitions, with exponential back-off and full-range jitter above one half."""

    max_retries: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.max_retries, int) or isinstance(self.max_retries, bool):
            raise WrongType(f"max_retries must be a whole number; {what_came(self.max_retries)}.")
        if self.max_retries < 0:
            raise InvalidArgument("max_retries cannot be negative.")

    def after_silence(self, attempt: int) -> float | None:
        """Seconds to wait after a failed connection. ``attempt`` counts from 0; None means to give up."""
        return None if attempt >= self.max_retries else back_off(attempt)

    def after_error(self, attempt: int, error: ApiError) -> float | None:
        """Seconds to wait after an error answer; None: give up.

        ``idempotency_in_progress`` counts: it is what the repetition of a call meets whose first
        delivery is still at work.
        """
        if attempt >= self.max_retries:
            return None
        if not isinstance(error, RateLimited | DependencyUnavailable | IdempotencyInProgress):
            return None
        if error.retry_after is None:
            return back_off(attempt)
        return error.retry_after if error.retry_after <= _PATIENCE_SECONDS else None


def back_off(attempt: int) -> float:
    """Seconds to wait before repetition 0, 1, …."""
    ceiling = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0**attempt)
    return ceiling * (0.5 + 0.5 * secrets.randbelow(1001) / 1000)


def parse_retry_after(header: str | None) -> float | None:
    """Whole seconds, as the contract has them; anything else counts as absent."""
    return float(header) if header is not None and header.isascii() and header.isdigit() else None
