"""Errors of this package, as a tree of classes.

- ``CorevaultError``: the base; catch it to catch all of these.

  - ``ApiError``: the server refused or failed. One subclass a stable code, rebuilt from problem details:
    ``Unauthenticated``, ``Forbidden``, ``NotFound``, ``MethodNotAllowed``, ``NotAcceptable``,
    ``IdempotencyConflict``, ``IdempotencyInProgress``, ``StateConflict``, ``OffsetMismatch``,
    ``BudgetExceeded`` (with the figures), ``PrivacyAlarm``, ``PreconditionFailed``, ``ContentTooLarge``,
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

from typing import Final

from corevault._api_errors import (
    BY_CODE,
    ApiError,
    BudgetExceeded,
    ContentTooLarge,
    DependencyUnavailable,
    DigestMismatch,
    Forbidden,
    IdempotencyConflict,
    IdempotencyInProgress,
    Internal,
    InvalidRequest,
    MethodNotAllowed,
    MethodNotAllowedOnPrivateData,
    NotAcceptable,
    NotFound,
    OffsetMismatch,
    PreconditionFailed,
    PrivacyAlarm,
    RangeNotSatisfiable,
    RateLimited,
    StateConflict,
    Unauthenticated,
    UnsupportedMediaType,
    api_error,
)
from corevault._client_errors import (
    ClientClosed,
    ConnectionFailed,
    ContentRejected,
    CorevaultError,
    InvalidArgument,
    JobFailed,
    MissingColumn,
    MissingDependency,
    NotConverged,
    TooManyNullRows,
    UnexpectedReply,
    UnreadableSource,
    UploadInterrupted,
    VerificationError,
    WaitTimeout,
    WrongType,
)

__all__ = [
    "BY_CODE",
    "ApiError",
    "BudgetExceeded",
    "ClientClosed",
    "ConnectionFailed",
    "ContentRejected",
    "ContentTooLarge",
    "CorevaultError",
    "DependencyUnavailable",
    "DigestMismatch",
    "Forbidden",
    "IdempotencyConflict",
    "IdempotencyInProgress",
    "Internal",
    "InvalidArgument",
    "InvalidRequest",
    "JobFailed",
    "MethodNotAllowed",
    "MethodNotAllowedOnPrivateData",
    "MissingColumn",
    "MissingDependency",
    "NotAcceptable",
    "NotConverged",
    "NotFound",
    "OffsetMismatch",
    "PreconditionFailed",
    "PrivacyAlarm",
    "RangeNotSatisfiable",
    "RateLimited",
    "StateConflict",
    "TooManyNullRows",
    "Unauthenticated",
    "UnexpectedReply",
    "UnreadableSource",
    "UnsupportedMediaType",
    "UploadInterrupted",
    "VerificationError",
    "WaitTimeout",
    "WrongType",
    "api_error",
]
_KINDS: Final = (CorevaultError, *CorevaultError.__subclasses__(), *InvalidArgument.__subclasses__(), *BY_CODE.values())

for _kind in _KINDS:
    _kind.__module__ = __name__  # the name by which users import them, and which tracebacks show
