"""Idempotency keys: a repeated request gets the recorded answer of the first one.

An answer is recorded in the transaction of its effect, so that both are committed or neither is. A refusal is not
recorded: it rolls back, and the caller may try again with the same key.

Of a body, only a keyed hash is recorded. A body may contain the digest of a table. With a plain hash, a reader of the
database could confirm a guess of the table.
"""

import hmac
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Final

from fastapi import Depends, Header, Request
from pydantic import BaseModel
from sqlalchemy.exc import IntegrityError
from starlette.responses import JSONResponse

from app.db import WriteSession, now
from app.errors import IdempotencyConflict, IdempotencyInProgress, InvalidRequest
from app.http.requests import repository
from app.http.requests.bodies import JsonRequest, find_body_refusal
from app.http.requests.models import IdempotentAnswer

LIFETIME: Final = timedelta(hours=24)
_KEY = re.compile(r"[\x21-\x7e]{1,128}", re.ASCII)
_PURPOSE: Final = b"corevault.request_body\0"
_RUNNING: Final = 0  # the status of a record whose answer is still being made


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer: status, JSON body and headers."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, status: int, body: BaseModel, headers: Mapping[str, str] | None = None) -> "Answer":
        return cls(status, body.model_dump(mode="json"), headers or {})

    def response(self) -> JSONResponse:
        return JSONResponse(dict(self.body), self.status, dict(self.headers))


@dataclass(frozen=True, slots=True)
class IdempotentRequest:
    """The parts of a request that a repetition must share. ``key`` is None if none was sent."""

    key: str | None
    route: str
    body_hash: str


async def read_idempotent_request(
    request: Request, idempotency_key: Annotated[str | None, Header()] = None
) -> IdempotentRequest:
    """Read the idempotency key, the route and the hash of the body.

    Raises:
        InvalidRequest: the key is malformed.
    """
    return IdempotentRequest(
        None if idempotency_key is None else _unquote(idempotency_key),
        f"{request.method} {request.url.path}",
        await _body_hash(request, request.app.state.body_key),
    )


Idempotent = Annotated[IdempotentRequest, Depends(read_idempotent_request)]


def answer_once(
    tx: WriteSession,
    caller_id: str,
    request: IdempotentRequest,
    produce: Callable[[], Answer],
    *,
    lifetime: timedelta | None = LIFETIME,
    omit: frozenset[str] = frozenset(),
) -> JSONResponse:
    """Answer a request once for each idempotency key.

    The answer is the recorded one of an earlier request with the key, or else that of ``produce``, recorded in ``tx``.
    ``lifetime`` None keeps the record without end. Members in ``omit`` are neither stored nor replayed.

    Raises:
        IdempotencyConflict: the key belongs to another body.
        IdempotencyInProgress: the first request is still running in another transaction.
    """
    if request.key is None:
        return produce().response()
    repository.forget_expired(tx, now())
    record = repository.find(tx, caller_id, request.route, request.key)
    if record is None:
        return _record(tx, _claim(tx, caller_id, request, request.key, lifetime), produce(), omit)
    if record.body_hash != request.body_hash:
        raise IdempotencyConflict
    return Answer(record.status, record.body, record.headers).response()


def _claim(
    tx: WriteSession, caller_id: str, request: IdempotentRequest, key: str, lifetime: timedelta | None
) -> IdempotentAnswer:
    """Record the key before the effect. A concurrent request waits here and is then refused."""
    at = now()
    record = IdempotentAnswer(
        caller_id=caller_id,
        route=request.route,
        key=key,
        body_hash=request.body_hash,
        status=_RUNNING,
        headers={},
        body={},
        created_at=at,
        expires_at=None if lifetime is None else at + lifetime,
    )
    tx.add(record)
    try:
        tx.flush()
    except IntegrityError as error:
        raise IdempotencyInProgress from error
    return record


def _record(tx: WriteSession, record: IdempotentAnswer, answer: Answer, omit: frozenset[str]) -> JSONResponse:
    record.status = answer.status
    record.headers = dict(answer.headers)
    record.body = {name: value for name, value in answer.body.items() if name not in omit}
    tx.flush()
    return answer.response()


def _unquote(header: str) -> str:
    key = header[1:-1] if len(header) >= 2 and header[0] == header[-1] == '"' else header
    if _KEY.fullmatch(key) is None:
        raise InvalidRequest.at(
            "/header/idempotency-key", "Send an Idempotency-Key of 1 to 128 visible ASCII characters."
        )
    return key


async def _body_hash(request: Request, body_key: bytes) -> str:
    """Compute the HMAC-SHA-256 of the JSON value; white space makes no difference."""
    raw = await request.body() if isinstance(request, JsonRequest) and find_body_refusal(request) is None else b""
    try:
        canonical = json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        canonical = raw
    return hmac.digest(body_key, _PURPOSE + canonical, "sha256").hex()
