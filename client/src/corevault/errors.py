"""Errors of this package, as a tree of classes.

- ``CorevaultError``: the base; catch it to catch all of these.

  - ``ApiError``: the server refused or failed. One subclass a stable code, rebuilt from problem details:
    ``Unauthenticated``, ``Forbidden``, ``NotFound``, ``MethodNotAllowed``, ``NotAcceptable``,
    ``IdempotencyConflict``, ``IdempotencyInProgress``, ``StateConflict``, ``OffsetMismatch``,
    ``BudgetExceeded`` (with the figures), ``PreconditionFailed``, ``ContentTooLarge``,
    ``UnsupportedMediaType``, ``RangeNotSatisfiable``, ``InvalidRequest``,
    ``MethodNotAllowedOnPrivateData``, ``DigestMismatch``, ``RateLimited``, ``DependencyUnavailable``,
    ``Internal``. A code without a class here is an ``ApiError``.
  - ``InvalidArgument`` (also a ``ValueError``): an argument is wrong; nothing was sent. Below it
    ``WrongType`` (also a ``TypeError``), ``MissingColumn`` (also a ``KeyError``) and
    ``UnreadableSource`` (also an ``OSError``).
  - ``TooManyNullRows``: the check before an upload counts too many null rows; nothing was sent.
  - ``ConnectionFailed``: no answer after all retries.
  - ``UploadInterrupted``: an upload in parts was interrupted; it can be resumed.
  - ``UnexpectedReply``: an answer does not follow the HTTP contract.
  - ``ContentRejected``, ``JobFailed``, ``WaitTimeout``: a wait failed.
  - ``VerificationError``: a release does not match its certificate.
  - ``NotConverged`` (also an ``ArithmeticError``): Newton's method did not reach the mode of a posterior.
  - ``MissingDependency`` (also an ``ImportError``): an optional package is not installed.
  - ``ClientClosed`` (also a ``RuntimeError``): the client was used after it was closed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from corevault._check import TableCheck
    from corevault.replies.job import Job


class CorevaultError(Exception):
    """Base of all errors of this package. ``detail`` is the message."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


class InvalidArgument(CorevaultError, ValueError):
    """An argument is wrong. Nothing was sent to the server."""


class WrongType(InvalidArgument, TypeError):
    """An argument has a type that is not accepted."""


class MissingColumn(InvalidArgument, KeyError):
    """A table lacks a column that is needed."""

    def __str__(self) -> str:
        return self.detail  # a KeyError would print quotation marks


class UnreadableSource(InvalidArgument, OSError):
    """A file does not exist or cannot be read; the cause is chained."""

    def __str__(self) -> str:
        return self.detail


class TooManyNullRows(CorevaultError, ValueError):
    """Too many rows of a table would be null. Nothing was sent to the server.

    ``check`` is the ``TableCheck`` with the counts of each column, and ``max_null_share`` the share allowed.
    """

    def __init__(self, check: "TableCheck", max_null_share: float) -> None:
        super().__init__(
            f"{check.null_rows} of {check.rows} rows do not fit the declared columns, so they would be null; "
            f"max_null_share allows a share of {max_null_share:.3g}. Correct these cells, or pass a larger "
            f"max_null_share.{check.counts()}"
        )
        self.check = check
        self.max_null_share = max_null_share


class NotConverged(CorevaultError, ArithmeticError):
    """Newton's method did not reach the mode of a posterior."""


class MissingDependency(CorevaultError, ImportError):
    """An optional package is needed and not installed."""


class ClientClosed(CorevaultError, RuntimeError):
    """The client was used after it was closed."""


class ConnectionFailed(CorevaultError):
    """The server could not be reached, or the connection broke; the cause is chained."""


class UploadInterrupted(CorevaultError):
    """An upload was interrupted, and all attempts to continue it failed. The cause is chained.

    ``datasets.resume(dataset_id, upload_id, source)`` continues it from ``offset`` within 24 hours.
    """

    def __init__(self, upload_id: str, offset: int) -> None:
        super().__init__(
            f"The upload {upload_id} was interrupted after {offset} bytes. Call datasets.resume within 24 hours to "
            "continue it."
        )
        self.upload_id = upload_id
        self.offset = offset


class UnexpectedReply(CorevaultError):
    """The server's answer does not have the shape of the contract."""


class VerificationError(CorevaultError):
    """A signature, digest or statement does not hold; do not use the release."""


class WaitTimeout(CorevaultError):
    """A wait took longer than allowed. The job or the ingestion continues on the server."""


_REMEDIES: Mapping[str, str] = {
    "malformed": "upload UTF-8 CSV with commas and a header that names each column once, Parquet, or an Arrow stream; "
    "Excel workbooks and compressed files are not read",
    "empty": "the file has no rows below the header; upload a file with rows",
    "missing_column": "the header must name every declared column as declared, separated by commas",
    "unknown_column": "the file has a column that is not declared, perhaps a data frame's index; remove it",
    "wrong_type": "the file's type of a column, such as date, list or structure, cannot be the declared one; upload "
    "numbers or text",
    "too_large": "the file is larger than the server accepts; upload fewer rows or a smaller format",
    "too_many_units": "the file has more units than the declared slots, which cannot change; create a dataset with "
    "more slots for the same population, and upload the file there",
    "duplicate_content": "the same bytes belong to another population; create the dataset with that population",
    "digest_mismatch": "the bytes changed in transit; upload the file again",
}


class ContentRejected(CorevaultError):
    """The uploaded file was rejected.

    ``reason`` is the stable code, such as ``missing_column``. ``columns`` are the affected columns.
    """

    def __init__(self, reason: str, columns: Sequence[str] = ()) -> None:
        remedy = f" ({_REMEDIES[reason]})" if reason in _REMEDIES else ""
        names = f"; columns: {', '.join(columns)}" if columns else ""
        super().__init__(f"The uploaded content was rejected: {reason}{remedy}{names}.")
        self.reason = reason
        self.columns = tuple(columns)


_FAILURES: Mapping[str, str] = {
    "run_failed": "the run ended with an error; ask the operator, who can find the cause in the worker's log",
    "interrupted": "the run lost its worker too often; submit the job again",
    "dataset_deleted": "the dataset was deleted; submit the job for another dataset",
}


class JobFailed(CorevaultError):
    """A job ended without a release. ``job`` is its last state, with ``job.error`` if it failed.

    ``job.raw["settlement"]`` holds the charge.
    """

    def __init__(self, job: "Job") -> None:
        code = job.error.code if job.error else ""
        remedy = f": {_FAILURES[code]}" if code in _FAILURES else ""
        failure = f" ({code}{remedy})" if code else ""
        super().__init__(f"Job {job.id} {job.status}{failure}.")
        self.job = job


class ApiError(CorevaultError):
    """The server's problem details: ``status``, ``code``, ``title``, ``detail``, ``request_id``.

    ``errors`` holds the faults of a request body, each ``{"pointer", "message"}``. ``members`` holds every member.
    ``retry_after`` holds the seconds of a ``Retry-After`` header, None without one.
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
    CODE = "unauthenticated"


class Forbidden(ApiError):
    CODE = "forbidden"


class NotFound(ApiError):
    CODE = "not_found"


class MethodNotAllowed(ApiError):
    CODE = "method_not_allowed"


class NotAcceptable(ApiError):
    CODE = "not_acceptable"


class IdempotencyConflict(ApiError):
    CODE = "idempotency_conflict"


class IdempotencyInProgress(ApiError):
    CODE = "idempotency_in_progress"


class StateConflict(ApiError):
    """The state of the resource does not allow this call.

    If too many uploads are open, ``uploads`` holds their ids: resume or discard one of them.
    """

    CODE = "state_conflict"

    def __str__(self) -> str:
        open_ones = f"\n  uploads: {', '.join(self.uploads)}" if self.uploads else ""
        return f"{super().__str__()}{open_ones}"

    @property
    def uploads(self) -> tuple[str, ...]:
        """The ids of the caller's open uploads if they cause the conflict, else empty."""
        given = self.members.get("uploads")
        return tuple(str(each) for each in given) if isinstance(given, list) else ()


class OffsetMismatch(ApiError):
    CODE = "offset_mismatch"


class BudgetExceeded(ApiError):
    """The budget does not cover the job; no balance has changed.

    ``requested``, ``limit`` and ``remaining`` are ``Cost`` objects, and ``epsilon_after`` is a number. A value of
    another form is passed on as received.
    """

    CODE = "budget_exceeded"

    def __str__(self) -> str:
        names = ("requested", "epsilon_after", "limit", "remaining")
        figures = "".join(f"\n  {name}: {self.members[name]}" for name in names if name in self.members)
        return f"{super().__str__()}{figures}"

    @property
    def requested(self) -> Any:
        """The cost of the job alone."""
        return self._figure("requested")

    @property
    def epsilon_after(self) -> Any:
        """The composed ε that the account would have after the job."""
        return self.members.get("epsilon_after")

    @property
    def limit(self) -> Any:
        """The account's limit."""
        return self._figure("limit")

    @property
    def remaining(self) -> Any:
        """The cost of the largest single full-batch job that would still be admitted."""
        return self._figure("remaining")

    def _figure(self, name: str) -> Any:
        from corevault.replies.dataset import Cost  # noqa: PLC0415 - replies import these errors

        given = self.members.get(name)
        return Cost.from_json(given) if isinstance(given, dict) and {"epsilon", "delta"} <= given.keys() else given


class PreconditionFailed(ApiError):
    CODE = "precondition_failed"


class ContentTooLarge(ApiError):
    CODE = "content_too_large"


class UnsupportedMediaType(ApiError):
    CODE = "unsupported_media_type"


class RangeNotSatisfiable(ApiError):
    CODE = "range_not_satisfiable"


class InvalidRequest(ApiError):
    CODE = "invalid_request"


class MethodNotAllowedOnPrivateData(ApiError):
    CODE = "method_not_allowed_on_private_data"


class DigestMismatch(ApiError):
    CODE = "digest_mismatch"


class RateLimited(ApiError):
    CODE = "rate_limited"


class DependencyUnavailable(ApiError):
    CODE = "dependency_unavailable"


class Internal(ApiError):
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
