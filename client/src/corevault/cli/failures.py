"""Exit codes and sentences of errors."""

import re
from argparse import Namespace
from typing import Final

from corevault.cli.wording import word_error
from corevault.errors import (
    ApiError,
    BudgetExceeded,
    ContentRejected,
    ContentTooLarge,
    CorevaultError,
    Forbidden,
    IdempotencyConflict,
    InvalidArgument,
    InvalidRequest,
    JobFailed,
    MethodNotAllowedOnPrivateData,
    MissingDependency,
    NotFound,
    PrivacyAlarm,
    StateConflict,
    TooManyNullRows,
    Unauthenticated,
    UnsupportedMediaType,
    VerificationError,
)

OK: Final = 0
NO: Final = 1
"""The answer is no: a check, a verification, a job or a file failed, or the state of the dataset does not allow it."""
USAGE: Final = 2
BUDGET: Final = 3
NOT_FOUND: Final = 4
"""Not found, or the key has no access."""
SERVER: Final = 5
"""An error of the server or the network."""
NOT_SAVED: Final = 6
"""A release was bought, but not saved: the budget is spent."""
INTERRUPTED: Final = 130

_CODES: Final[tuple[tuple[tuple[type[CorevaultError], ...], int], ...]] = (
    ((BudgetExceeded,), BUDGET),
    ((NotFound, Forbidden, Unauthenticated), NOT_FOUND),
    (
        (TooManyNullRows, ContentRejected, ContentTooLarge, JobFailed, PrivacyAlarm, StateConflict, VerificationError),
        NO,
    ),
    ((InvalidArgument, InvalidRequest, MissingDependency), USAGE),
    ((IdempotencyConflict, MethodNotAllowedOnPrivateData, UnsupportedMediaType), USAGE),
)


def find_exit_code(error: CorevaultError) -> int:
    """The exit code of an error."""
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), SERVER)


def describe_error(error: CorevaultError, options: Namespace | None = None) -> str:
    """One line: the sentence, and a stable code in brackets. ``options`` are the command's options."""
    code = error.code if isinstance(error, ApiError) else _make_code(type(error).__name__)
    parts = [" ".join(line.split()) for line in word_error(error, options).splitlines() if line.strip()]
    text = "".join(part + (" " if part.endswith(".") else "; ") for part in parts).rstrip("; ")
    request = f" (request {error.request_id})" if isinstance(error, ApiError) and error.request_id else ""
    return f"corevault: {text} [{code}]{request}"


def _make_code(name: str) -> str:
    """``TooManyNullRows`` as ``too_many_null_rows``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
