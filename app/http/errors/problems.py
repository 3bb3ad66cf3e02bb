"""Conversion of errors to ``application/problem+json`` (RFC 9457).

A problem contains no value that a caller sent, no message of a library, and nothing that was read from rows.
"""

from collections.abc import Mapping
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from app.context import note_refusal
from app.errors import (
    BudgetExceeded,
    ContentTooLarge,
    CorevaultError,
    Internal,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    UnsupportedMediaType,
)
from app.http.errors.codes import MEDIA_TYPE, PROBLEMS
from app.http.errors.validation_errors import convert_parameter_errors
from app.http.requests.bodies import find_body_refusal

RETRY_AFTER_SECONDS: Final = 5

_OF_STATUS: Final[Mapping[int, type[CorevaultError]]] = {
    404: NotFound,
    405: MethodNotAllowed,
    413: ContentTooLarge,
    415: UnsupportedMediaType,
}


def make_document(error: CorevaultError, request_id: str) -> dict[str, Any]:
    """Make the members of the problem."""
    title = PROBLEMS[error.code][1]
    body: dict[str, Any] = {
        "type": f"urn:corevault:problem:{error.code}",
        "title": title,
        "status": find_status(error),
        "detail": error.detail,
        "code": error.code,
        "request_id": request_id,
    }
    if isinstance(error, InvalidRequest):
        body["errors"] = [{"pointer": fault.pointer, "message": fault.message} for fault in error.faults]
    return body | dict(error.members)


def find_status(error: CorevaultError) -> int:
    """Return the status of the error's code.

    A refusal of a whole HTTP message states its status itself, as ``http_status``.
    """
    return int(getattr(error, "http_status", PROBLEMS[error.code][0]))


def note_error(error: CorevaultError) -> None:
    """Note the error in the context of the current request, for its audit entry."""
    note_refusal(error.code, error.obstacle if isinstance(error, BudgetExceeded) else None)


def make_response(error: CorevaultError, request_id: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Make the response for a domain error, with the headers that its status requires."""
    status = find_status(error)
    note_error(error)
    extra = dict(headers or {})
    if status == 401:
        extra["WWW-Authenticate"] = "Bearer"
    set_retry_after(extra, status)
    return JSONResponse(make_document(error, request_id), status, {"Cache-Control": "no-store"} | extra, MEDIA_TYPE)


def set_retry_after(headers: dict[str, str] | MutableHeaders, status: int) -> None:
    """Set the default seconds to wait, if the status needs them."""
    if status in {429, 503}:
        headers.setdefault("Retry-After", str(RETRY_AFTER_SECONDS))


def get_request_id(request: Request) -> str:
    return str(request.state.request_id)


async def answer_domain_error(request: Request, error: Exception) -> JSONResponse:
    """Answer a domain error."""
    assert isinstance(error, CorevaultError)
    return make_response(error, get_request_id(request), getattr(error, "headers", None))


async def answer_router_error(request: Request, error: Exception) -> JSONResponse:
    """Answer a refusal of the framework: an unknown address or method."""
    assert isinstance(error, HTTPException)
    return make_response(_OF_STATUS.get(error.status_code, Internal)(), get_request_id(request), error.headers)


async def answer_invalid_input(request: Request, error: Exception) -> JSONResponse:
    """Answer a body that cannot be read, or input that is not valid."""
    assert isinstance(error, RequestValidationError)
    refusal = find_body_refusal(request) or InvalidRequest(faults=convert_parameter_errors(error.errors()))
    return make_response(refusal, get_request_id(request), getattr(refusal, "headers", None))
