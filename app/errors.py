"""Domain errors: a stable code, a plain sentence, and nothing that was read from rows or typed by a caller.

The classes know no HTTP; ``app.http.errors.codes`` holds the one table that maps codes to statuses.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a request body: a JSON pointer to a *known* member, and what to do about it."""

    pointer: str
    message: str


class CorevaultError(Exception):
    """Base of all domain errors. ``detail`` says what to do; ``members`` are extra public fields."""

    code: ClassVar[str] = "internal"
    default: ClassVar[str] = "Something failed on our side. Nothing was charged by this call; try it again."

    def __init__(self, detail: str | None = None, **members: object) -> None:
        super().__init__(detail or self.default)
        self.detail = detail or self.default
        self.members: Mapping[str, object] = members


class Internal(CorevaultError):
    """A bug or a broken invariant."""


class Unauthenticated(CorevaultError):
    code = "unauthenticated"
    default = "Send a valid API key as 'Authorization: Bearer cv_…'."


class Forbidden(CorevaultError):
    code = "forbidden"
    default = "Your key's role does not allow this call."

    @classmethod
    def to(cls, role: str, needed: Iterable[str]) -> "Forbidden":
        """To a caller of that ``role``, where one of the ``needed`` ones is asked for."""
        return cls(f"This call needs a key of the role {' or '.join(sorted(needed))}; yours is of the role {role}.")


class NotFound(CorevaultError):
    code = "not_found"
    default = "There is nothing here that you may see. Public releases need no API key; all else needs one that may."


class MethodNotAllowed(CorevaultError):
    code = "method_not_allowed"
    default = "This address does not answer that HTTP method; see the Allow header."


class NotAcceptable(CorevaultError):
    code = "not_acceptable"
    default = "None of the media types in Accept is offered here."


class IdempotencyConflict(CorevaultError):
    code = "idempotency_conflict"
    default = "This Idempotency-Key was used with another body; take a new key."


class IdempotencyInProgress(CorevaultError):
    code = "idempotency_in_progress"
    default = "The first request with this Idempotency-Key is still running; try again in a moment."


class StateConflict(CorevaultError):
    code = "state_conflict"
    default = "The resource is not in a state that allows this call."


class OffsetMismatch(CorevaultError):
    """``offset`` is where the upload continues."""

    code = "offset_mismatch"
    default = "The upload continues at another offset; see the Upload-Offset header."

    def __init__(self, detail: str | None = None, offset: int = 0) -> None:
        super().__init__(detail, offset=offset)
        self.headers = {"Upload-Offset": str(offset)}


class BudgetExceeded(CorevaultError):
    code = "budget_exceeded"
    default = (
        "The budget does not cover this job; ask for what remains at most, or ask the owner for more budget. What "
        "remains is the largest single job that fits: together jobs cost less than their sum, so it is no difference."
    )


class PreconditionFailed(CorevaultError):
    code = "precondition_failed"
    default = "The resource has changed since you read it; read it again."


class ContentTooLarge(CorevaultError):
    code = "content_too_large"
    default = "The body is larger than this server accepts."


class UnsupportedMediaType(CorevaultError):
    code = "unsupported_media_type"
    default = "Send one of the media types that the documentation names, without Content-Encoding."


class RangeNotSatisfiable(CorevaultError):
    code = "range_not_satisfiable"
    default = "The requested range lies outside of the representation."


class InvalidRequest(CorevaultError):
    """The request is malformed; ``faults`` point at the members concerned."""

    code = "invalid_request"
    default = "The request is not valid; see 'errors'."

    def __init__(self, detail: str | None = None, faults: tuple[Fault, ...] = ()) -> None:
        super().__init__(detail)
        self.faults = faults

    @classmethod
    def at(cls, pointer: str, message: str) -> "InvalidRequest":
        """A single fault, whose message is also the detail."""
        return cls(message, (Fault(pointer, message),))


class MethodNotAllowedOnPrivateData(CorevaultError):
    code = "method_not_allowed_on_private_data"
    default = "This method is not private; it runs only on datasets whose sensitivity is 'public'."


class DigestMismatch(CorevaultError):
    code = "digest_mismatch"
    default = "The body does not have the digest that Content-Digest names; nothing was kept."


class RateLimited(CorevaultError):
    code = "rate_limited"
    default = "Too many requests; wait as long as Retry-After says."


class DependencyUnavailable(CorevaultError):
    code = "dependency_unavailable"
    default = "A service that this call needs does not answer; try again after Retry-After."
