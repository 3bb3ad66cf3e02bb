"""Domain errors, each with a stable code and a message in plain words.

A message contains nothing that was read from rows or sent by a caller. The classes do not depend on HTTP: the table in
``app.http.errors.codes`` maps codes to statuses.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a request: a JSON pointer to a *declared* member, and the remedy."""

    pointer: str
    message: str


class CorevaultError(Exception):
    """Base of all domain errors.

    ``detail`` states the cause and the remedy; ``members`` are further public members of the problem.
    """

    code: ClassVar[str] = "internal"
    default: ClassVar[str] = "The service failed. This call charged nothing; try again."

    def __init__(self, detail: str | None = None, **members: object) -> None:
        super().__init__(detail or self.default)
        self.detail = detail or self.default
        self.members: Mapping[str, object] = members


class Internal(CorevaultError):
    """A bug or a broken invariant."""


class Unauthenticated(CorevaultError):
    code = "unauthenticated"
    default = (
        "The API key is missing, wrong, expired or revoked. Send a valid one as 'Authorization: Bearer cv_…'. "
        "In the Python client, it is the argument api_key."
    )


class Forbidden(CorevaultError):
    code = "forbidden"
    default = "Your key's role does not allow this call."

    @classmethod
    def to(cls, role: str, needed: Iterable[str]) -> "Forbidden":
        """Make the error for a caller of ``role`` without a ``needed`` role."""
        return cls(f"This call needs a key of the role {' or '.join(sorted(needed))}; yours is of the role {role}.")


class NotFound(CorevaultError):
    code = "not_found"
    default = "Not found, or your key has no access to it. Public releases need no API key."


class MethodNotAllowed(CorevaultError):
    code = "method_not_allowed"
    default = "This address does not support that HTTP method; use one from the Allow header."


class NotAcceptable(CorevaultError):
    code = "not_acceptable"
    default = "No media type in the Accept header is available here; see the documentation of this call."


class IdempotencyConflict(CorevaultError):
    code = "idempotency_conflict"
    default = "This Idempotency-Key was used with another body; use a new key."


class IdempotencyInProgress(CorevaultError):
    code = "idempotency_in_progress"
    default = "The first request with this Idempotency-Key is still running; try again in a moment."


class StateConflict(CorevaultError):
    code = "state_conflict"
    default = "The state of the resource does not allow this call."


class OffsetMismatch(CorevaultError):
    """A part of an upload at a wrong offset. ``offset`` is the right one."""

    code = "offset_mismatch"
    default = "The upload continues at another offset; send the part that starts at Upload-Offset."

    def __init__(self, detail: str | None = None, offset: int = 0) -> None:
        super().__init__(detail, offset=offset)
        self.headers = {"Upload-Offset": str(offset)}


LackingBudget = Literal["limit", "cap", "allocation"]
"""Which budget has no room for a job: the account's limit, the dataset's cap, or the key's allocation."""


class BudgetExceeded(CorevaultError):
    code = "budget_exceeded"
    default = (
        "The budget does not cover this job. Request a cost of at most 'remaining', or ask the owner for more budget. "
        "'remaining' is the cost of the largest single job that is admitted. It is not limit minus spent, because "
        "several jobs together cost less than the sum of their costs."
    )

    @property
    def obstacle(self) -> str | None:
        """Which budget has no room, in the words of a quote: ``limit``, ``cap`` or ``allocation``."""
        reason = self.members.get("reason")
        return None if reason is None else str(reason)


class PrivacyAlarm(CorevaultError):
    """The continuous audit has evidence against the privacy mechanism, or its state is unknown."""

    code = "privacy_alarm"
    default = (
        "The continuous privacy audit has raised an alarm, so no private data is opened until an administrator acts. "
        "This call charged nothing."
    )


class PreconditionFailed(CorevaultError):
    code = "precondition_failed"
    default = "The resource is not the one in the If-Match header; read it again."


class ContentTooLarge(CorevaultError):
    code = "content_too_large"
    default = "The body is larger than this server accepts."


class UnsupportedMediaType(CorevaultError):
    code = "unsupported_media_type"
    default = "Send a media type that the documentation of this call names, without Content-Encoding."


class RangeNotSatisfiable(CorevaultError):
    code = "range_not_satisfiable"
    default = "The requested range is outside the representation; Content-Range states its length."


class InvalidRequest(CorevaultError):
    """A malformed request; ``faults`` point at its wrong members."""

    code = "invalid_request"
    default = "The request is not valid; 'errors' lists the faults found."

    def __init__(self, detail: str | None = None, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(detail)
        self.faults = faults

    @classmethod
    def at(cls, pointer: str, message: str) -> "InvalidRequest":
        """Make the error for a single fault, whose message is also the detail."""
        return cls(message, (Fault(pointer, message),))


class MethodNotAllowedOnPrivateData(CorevaultError):
    code = "method_not_allowed_on_private_data"
    default = (
        "This method is not private. It runs only on datasets whose sensitivity is 'public'. Leave the method out, or "
        "choose a private one."
    )


class DigestMismatch(CorevaultError):
    code = "digest_mismatch"
    default = "The body does not match the digest in Content-Digest. Nothing was stored; send it again."


class RateLimited(CorevaultError):
    code = "rate_limited"
    default = "Too many requests; wait for the seconds in Retry-After."


class DependencyUnavailable(CorevaultError):
    code = "dependency_unavailable"
    default = "A service that this call needs does not answer; try again after the seconds in Retry-After."
