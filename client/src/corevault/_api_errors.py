"""Errors that the server answers with; see ``corevault.errors``."""

from collections.abc import Mapping
from typing import Any, ClassVar

from corevault._client_errors import CorevaultError


class ApiError(CorevaultError):
    """The server's problem details: ``status``, ``code``, ``title``, ``detail``, ``request_id``.

    ``errors`` holds the faults of a request body, each ``{"pointer", "message"}``. ``members`` holds every member.
    ``retry_after`` holds the seconds of a ``Retry-After`` header, None without one.

    >>> try:
    ...     client.jobs.submit("clinic", model, epsilon=-1.0)
    ... except ApiError as error:
    ...     print(error.status, error.code, error.errors[0]["pointer"])
    422 invalid_request /privacy/epsilon
    """

    CODE: ClassVar[str] = ""

    def __init__(self, problem: Mapping[str, Any], *, status: int, retry_after: float | None = None) -> None:
        detail = str(problem.get("detail") or problem.get("title") or f"The server answered with status {status}.")
        errors = problem.get("errors")
        self.status = status
        self.code = str(problem.get("code") or self.CODE or "unknown")
        self.title = str(problem.get("title") or "")
        self.request_id = str(problem.get("request_id") or "")
        self.errors = tuple(fault for fault in errors if isinstance(fault, dict)) if isinstance(errors, list) else ()
        self.members = dict(problem)
        self.retry_after = retry_after
        super().__init__(detail)

    def __str__(self) -> str:
        faults = "".join(f"\n  {fault.get('pointer', '')}: {fault.get('message', '')}" for fault in self.errors)
        return f"{self.detail} [{self.code}]{faults}"


class Unauthenticated(ApiError):
    """The API key is missing, wrong, expired or revoked.

    >>> Unauthenticated.CODE
    'unauthenticated'
    """

    CODE = "unauthenticated"


class Forbidden(ApiError):
    """The key's role may not make this call.

    >>> client.keys.list()
    Traceback (most recent call last):
        ...
    corevault.errors.Forbidden: This call needs a key of the role admin; yours is of the role owner. [forbidden]
    """

    CODE = "forbidden"


class NotFound(ApiError):
    """There is no such object, or the key has no access to it.

    >>> client.jobs.get("job_1")
    Traceback (most recent call last):
        ...
    corevault.errors.NotFound: Not found, or your key has no access to it. Public releases need no API key. [not_found]
    """

    CODE = "not_found"


class MethodNotAllowed(ApiError):
    """The address does not take this HTTP method.

    >>> MethodNotAllowed.CODE
    'method_not_allowed'
    """

    CODE = "method_not_allowed"


class NotAcceptable(ApiError):
    """The server has no representation of the requested type.

    >>> NotAcceptable.CODE
    'not_acceptable'
    """

    CODE = "not_acceptable"


class IdempotencyConflict(ApiError):
    """The idempotency key was used with another request.

    >>> first = client.jobs.submit("clinic", model, epsilon=0.1, idempotency_key="once")
    >>> client.jobs.submit("clinic", model, epsilon=0.2, idempotency_key="once")
    Traceback (most recent call last):
        ...
    corevault.errors.IdempotencyConflict: This Idempotency-Key was used with another body; ...
    """

    CODE = "idempotency_conflict"


class IdempotencyInProgress(ApiError):
    """The first request with this idempotency key has not ended; try again.

    >>> IdempotencyInProgress.CODE
    'idempotency_in_progress'
    """

    CODE = "idempotency_in_progress"


class StateConflict(ApiError):
    """The state of the resource does not allow this call.

    If too many uploads are open, ``uploads`` holds their ids: resume or discard one of them.

    >>> client.jobs.submit("halted", model, epsilon=0.5)
    Traceback (most recent call last):
        ...
    corevault.errors.StateConflict: The dataset has no content yet. Its owner must upload a table first. ...
    """

    CODE = "state_conflict"

    def __str__(self) -> str:
        open_ones = f"\n  uploads: {', '.join(self.uploads)}" if self.uploads else ""
        return f"{super().__str__()}{open_ones}"

    @property
    def uploads(self) -> tuple[str, ...]:
        """The ids of the caller's open uploads if they cause the conflict, else empty.

        >>> StateConflict({"uploads": ["upl_1"]}, status=409).uploads
        ('upl_1',)
        """
        given = self.members.get("uploads")
        return tuple(str(each) for each in given) if isinstance(given, list) else ()


class OffsetMismatch(ApiError):
    """A part of an upload does not begin where the server's bytes end.

    >>> OffsetMismatch.CODE
    'offset_mismatch'
    """

    CODE = "offset_mismatch"


_LACKING: Mapping[str, str] = {
    "limit": "The account's limit has no room for this job.",
    "cap": "The dataset's limit has no room for this job.",
    "allocation": "The allocation of your key has no room for this job.",
}


class BudgetExceeded(ApiError):
    """The budget does not cover the job; no balance has changed.

    ``reason`` names the budget that has no room, and the message contains a sentence about it. ``requested``, ``limit``
    and ``remaining`` are ``Cost`` objects, and ``epsilon_after`` is a number. A value of another form is passed on as
    received.

    >>> try:
    ...     client.jobs.submit("clinic", model, epsilon=15.0)
    ... except BudgetExceeded as error:
    ...     print(error.requested)
    ε=15, δ=1e-06
    """

    CODE = "budget_exceeded"

    def __init__(self, problem: Mapping[str, Any], *, status: int, retry_after: float | None = None) -> None:
        super().__init__(problem, status=status, retry_after=retry_after)
        self.detail = f"{self.detail} {_LACKING.get(self.reason or '', '')}".rstrip()

    @property
    def reason(self) -> str | None:
        """Which budget has no room: ``limit``, ``cap`` or ``allocation``, as in a quote.

        >>> BudgetExceeded({"reason": "allocation"}, status=409).reason
        'allocation'
        """
        given = self.members.get("reason")
        return given if isinstance(given, str) else None

    def __str__(self) -> str:
        names = ("requested", "epsilon_after", "limit", "remaining")
        figures = "".join(f"\n  {name}: {self.members[name]}" for name in names if name in self.members)
        return f"{super().__str__()}{figures}"

    @property
    def requested(self) -> Any:
        """The cost of the job alone.

        >>> BudgetExceeded({"requested": {"epsilon": 0.5, "delta": 1e-6}}, status=409).requested
        Cost(epsilon=0.5, delta=1e-06)
        """
        return self._figure("requested")

    @property
    def epsilon_after(self) -> Any:
        """The composed ε that the account would have after the job.

        >>> BudgetExceeded({"epsilon_after": 9.2}, status=409).epsilon_after
        9.2
        """
        return self.members.get("epsilon_after")

    @property
    def limit(self) -> Any:
        """The lowest limit of the job: the account's, the dataset's, or that of the key's allocation.

        >>> BudgetExceeded({"limit": {"epsilon": 0.5, "delta": 1e-6}}, status=409).limit
        Cost(epsilon=0.5, delta=1e-06)
        """
        return self._figure("limit")

    @property
    def remaining(self) -> Any:
        """The cost of the largest single full-batch job that would still be admitted.

        >>> BudgetExceeded({"remaining": {"epsilon": 0.5, "delta": 1e-6}}, status=409).remaining
        Cost(epsilon=0.5, delta=1e-06)
        """
        return self._figure("remaining")

    def _figure(self, name: str) -> Any:
        from corevault.replies.dataset import Cost  # noqa: PLC0415 - replies import these errors

        given = self.members.get(name)
        return Cost.from_json(given) if isinstance(given, dict) and {"epsilon", "delta"} <= given.keys() else given


class PrivacyAlarm(ApiError):
    """The server's privacy audit has raised an alarm; an administrator must act. No balance has changed.

    >>> PrivacyAlarm.CODE
    'privacy_alarm'
    """

    CODE = "privacy_alarm"


class PreconditionFailed(ApiError):
    """A condition of the request's headers does not hold.

    >>> PreconditionFailed.CODE
    'precondition_failed'
    """

    CODE = "precondition_failed"


class ContentTooLarge(ApiError):
    """A request or an upload is larger than the server accepts.

    >>> ContentTooLarge.CODE
    'content_too_large'
    """

    CODE = "content_too_large"


class UnsupportedMediaType(ApiError):
    """The server does not read this media type.

    >>> UnsupportedMediaType.CODE
    'unsupported_media_type'
    """

    CODE = "unsupported_media_type"


class RangeNotSatisfiable(ApiError):
    """The requested range is outside of the representation.

    >>> RangeNotSatisfiable.CODE
    'range_not_satisfiable'
    """

    CODE = "range_not_satisfiable"


class InvalidRequest(ApiError):
    """The request is not valid; ``errors`` lists its faults.

    >>> try:
    ...     client.quote("clinic", model, epsilon=0.5, size=0)
    ... except InvalidRequest as error:
    ...     print(error.errors[0]["pointer"])
    /size
    """

    CODE = "invalid_request"


class MethodNotAllowedOnPrivateData(ApiError):
    """The method is not private, and the dataset is not public.

    >>> client.quote("clinic", model, method="uniform", size=20)
    Traceback (most recent call last):
        ...
    corevault.errors.MethodNotAllowedOnPrivateData: This method is not private. ...
    """

    CODE = "method_not_allowed_on_private_data"


class DigestMismatch(ApiError):
    """The bytes that arrived do not have the stated digest.

    >>> DigestMismatch.CODE
    'digest_mismatch'
    """

    CODE = "digest_mismatch"


class RateLimited(ApiError):
    """Too many requests; ``retry_after`` is the number of seconds to wait.

    >>> RateLimited({}, status=429, retry_after=7.0).retry_after
    7.0
    """

    CODE = "rate_limited"


class DependencyUnavailable(ApiError):
    """A part of the service is not available; try again later.

    >>> DependencyUnavailable.CODE
    'dependency_unavailable'
    """

    CODE = "dependency_unavailable"


class Internal(ApiError):
    """A fault of the server. ``request_id`` finds it in the server's log.

    >>> Internal.CODE
    'internal'
    """

    CODE = "internal"


BY_CODE: Mapping[str, type[ApiError]] = {kind.CODE: kind for kind in ApiError.__subclasses__()}
_BY_BARE_STATUS: Mapping[int, type[ApiError]] = {429: RateLimited, 503: DependencyUnavailable}


def api_error(problem: object, *, status: int, retry_after: float | None = None) -> ApiError:
    """The error for an unsuccessful answer.

    ``problem`` is the decoded body, of any type. A proxy may answer without problem details; 429 and 503 still have
    their class then.
    """
    members: Mapping[str, Any] = problem if isinstance(problem, dict) else {}
    kind = BY_CODE.get(str(members.get("code"))) or (ApiError if "code" in members else _BY_BARE_STATUS.get(status))
    return (kind or ApiError)(members, status=status, retry_after=retry_after)
