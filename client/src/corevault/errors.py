"""Errors of this package, as a tree of classes.

- ``CorevaultError``: the base; catch it to catch all of these.

  - ``ApiError``: the server refused or failed. One subclass a stable code, rebuilt from problem details:
    ``Unauthenticated``, ``Forbidden``, ``NotFound``, ``MethodNotAllowed``, ``NotAcceptable``,
    ``IdempotencyConflict``, ``IdempotencyInProgress``, ``StateConflict``, ``OffsetMismatch``,
    ``BudgetExceeded`` (with the figures), ``PreconditionFailed``, ``ContentTooLarge``,
    ``UnsupportedMediaType``, ``RangeNotSatisfiable``, ``InvalidRequest``,
    ``MethodNotAllowedOnPrivateData``, ``DigestMismatch``, ``RateLimited``, ``DependencyUnavailable``,
    ``Internal``. A code that this version does not know stays an ``ApiError``.
  - ``InvalidArgument`` (also a ``ValueError``): an argument is wrong; nothing was sent. Below it
    ``WrongType`` (also a ``TypeError``), ``MissingColumn`` (also a ``KeyError``) and
    ``UnreadableSource`` (also an ``OSError``).
  - ``TooManyNullRows``: the check before an upload found too many null rows; nothing was sent.
  - ``ConnectionFailed``: no answer came, after all retries.
  - ``UploadInterrupted``: an upload in parts broke off; it can be resumed.
  - ``UnexpectedReply``: an answer came that is not what the contract says.
  - ``ContentRejected``, ``JobFailed``, ``WaitTimeout``: the ways in which a wait fails.
  - ``VerificationError``: a release is not what its certificate says.
  - ``NotConverged`` (also an ``ArithmeticError``): a posterior has no mode that could be reached.
  - ``MissingDependency`` (also an ``ImportError``): an optional package is not installed.
  - ``ClientClosed`` (also a ``RuntimeError``): the client was used after it was closed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from corevault._check import TableCheck
    from corevault.replies.job import Job


class CorevaultError(Exception):
    """Base of all errors of this package. ``detail`` is a plain sentence."""

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
            f"{check.null_rows} of {check.rows} rows do not fit the declared columns and would count for nothing; "
            f"max_null_share allows {max_null_share:.3g} of them. Correct these cells, or pass a larger "
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
    """An upload broke off and could not be resumed yet. The cause is chained.

    ``datasets.resume(dataset_id, upload_id, source)`` goes on from ``offset``, for a day.
    """

    def __init__(self, upload_id: str, offset: int) -> None:
        super().__init__(f"The upload {upload_id} broke off after {offset} bytes; resume it with datasets.resume.")
        self.upload_id = upload_id
        self.offset = offset


class UnexpectedReply(CorevaultError):
    """The server's answer does not have the shape of the contract."""


class VerificationError(CorevaultError):
    """A signature, digest or statement does not hold; do not use the release."""


class WaitTimeout(CorevaultError):
    """A wait took longer than allowed. What was waited for continues at the server."""


_REMEDIES: Mapping[str, str] = {
    "malformed": "send UTF-8 CSV with commas and a header that names each column once, Parquet or an Arrow stream; no "
    "Excel workbook, and nothing that is compressed as a whole",
    "empty": "it has no rows below the header",
    "missing_column": "the header must name every declared column as declared, with commas in between",
    "unknown_column": "it has a column that is not declared (perhaps a data frame's index); leave it out",
    "wrong_type": "a column's type in the file cannot be the declared one (a date, a list, a structure); send numbers "
    "or text",
    "too_large": "it is larger than the server takes",
    "too_many_units": "it holds more units than the declared slots, which never change: create a new dataset with more "
    "slots for the same population, and upload it there",
    "duplicate_content": "the same bytes are the content of another population; name that one as the population",
    "digest_mismatch": "its bytes changed on the way; upload it again",
}


class ContentRejected(CorevaultError):
    """The uploaded file was rejected.

    ``reason`` is the stable code, such as ``missing_column``; ``columns`` are the names that it is about, if any.
    """

    def __init__(self, reason: str, columns: Sequence[str] = ()) -> None:
        remedy = f" ({_REMEDIES[reason]})" if reason in _REMEDIES else ""
        names = f"; columns: {', '.join(columns)}" if columns else ""
        super().__init__(f"The uploaded content was rejected: {reason}{remedy}{names}.")
        self.reason = reason
        self.columns = tuple(columns)


class JobFailed(CorevaultError):
    """A job ended without a release. ``job`` is its last state, with ``job.error`` where it has one."""

    def __init__(self, job: "Job") -> None:
        why = f" ({job.error.code})" if job.error else ""
        super().__init__(f"Job {job.id} {job.status}{why}.")
        self.job = job


class ApiError(CorevaultError):
    """The server's problem details: ``status``, ``code``, ``title``, ``detail``, ``request_id``.

    ``errors`` holds the faults of a request body, each ``{"pointer", "message"}``; ``members`` every
    further member; ``retry_after`` the seconds of a ``Retry-After`` header, where there was one.
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
    """The state of things does not allow this call.

    Where too many uploads are open, ``uploads`` has their ids: resume or discard one.
    """

    CODE = "state_conflict"

    def __str__(self) -> str:
        open_ones = f"\n  uploads: {', '.join(self.uploads)}" if self.uploads else ""
        return f"{super().__str__()}{open_ones}"

    @property
    def uploads(self) -> tuple[str, ...]:
        """The ids of the caller's open uploads, where they are the conflict."""
        given = self.members.get("uploads")
        return tuple(str(each) for each in given) if isinstance(given, list) else ()


class OffsetMismatch(ApiError):
    CODE = "offset_mismatch"


class BudgetExceeded(ApiError):
    """The budget does not cover the job; no balance has changed.

    ``requested``, ``limit`` and ``remaining`` are a ``Cost`` each, ``epsilon_after`` is a number; what the server
    gives otherwise stays as it is.
    """

    CODE = "budget_exceeded"

    def __str__(self) -> str:
        names = ("requested", "epsilon_after", "limit", "remaining")
        figures = "".join(f"\n  {name}: {self.members[name]}" for name in names if name in self.members)
        return f"{super().__str__()}{figures}"

    @property
    def requested(self) -> Any:
        """What the job would cost alone."""
        return self._figure("requested")

    @property
    def epsilon_after(self) -> Any:
        """What the composed total would have been."""
        return self.members.get("epsilon_after")

    @property
    def limit(self) -> Any:
        """The account's limit."""
        return self._figure("limit")

    @property
    def remaining(self) -> Any:
        """The largest single full-batch job that would still be admitted."""
        return self._figure("remaining")

    def _figure(self, name: str) -> Any:
        from corevault.replies.dataset import Cost  # noqa: PLC0415 - replies know these errors

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
    """The error that an unsuccessful answer stands for.

    ``problem`` is the decoded body, whatever it is: a proxy in between may answer without problem details,
    and then 429 and 503 still keep their class.
    """
    members: Mapping[str, Any] = problem if isinstance(problem, dict) else {}
    kind = BY_CODE.get(str(members.get("code"))) or (ApiError if "code" in members else _BY_BARE_STATUS.get(status))
    return (kind or ApiError)(members, status=status, retry_after=retry_after)
