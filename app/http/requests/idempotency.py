"""``Idempotency-Key``: the answer is recorded in the transaction of its effect, so that both happen once or not at all.

Only answers are recorded; a refusal raises, rolls back and may be retried under the same key. Of a body, a keyed hash
is recorded: it may hold the digest of a table, which whoever reads the database could otherwise confirm by guessing.
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
from app.http.requests.bodies import JsonRequest, unreadable_body
from app.http.requests.models import IdempotentAnswer

LIFETIME: Final = timedelta(hours=24)
_KEY = re.compile(r"[\x21-\x7e]{1,128}", re.ASCII)
_PURPOSE: Final = b"corevault.request_body\0"
_RUNNING: Final = 0  # the status of a record whose answer is still being made


@dataclass(frozen=True, slots=True)
class Answer:
    """A success: status, JSON body, headers."""

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
    """What a repetition must agree in. ``key`` is None where the caller sent none."""

    key: str | None
    route: str
    body_hash: str


async def idempotent_request(
    request: Request, idempotency_key: Annotated[str | None, Header()] = None
) -> IdempotentRequest:
    return IdempotentRequest(
        None if idempotency_key is None else _unquote(idempotency_key),
        f"{request.method} {request.url.path}",
        await _body_hash(request, request.app.state.body_key),
    )


Idempotent = Annotated[IdempotentRequest, Depends(idempotent_request)]


def idempotent(
    tx: WriteSession,
    caller_id: str,
    request: IdempotentRequest,
    produce: Callable[[], Answer],
    *,
    lifetime: timedelta | None = LIFETIME,
    omit: frozenset[str] = frozenset(),
) -> JSONResponse:
    """The recorded answer of an earlier request with this key, or else ``produce()``, recorded in ``tx``.

    ``lifetime`` None keeps the record for ever; members in ``omit`` are never stored (nor replayed).

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
    """Take the key before the effect: a rival waits here, and finds it taken."""
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
            "/header/idempotency-key", "The header Idempotency-Key takes 1 to 128 visible ASCII characters."
        )
    return key


async def _body_hash(request: Request, body_key: bytes) -> str:
    """HMAC-SHA-256 of the JSON value, so that spelling it with other spaces is still the same body."""
    raw = await request.body() if isinstance(request, JsonRequest) and unreadable_body(request) is None else b""
    try:
        canonical = json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        canonical = raw
    return hmac.digest(body_key, _PURPOSE + canonical, "sha256").hex()
