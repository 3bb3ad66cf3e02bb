"""Answers to requests that a stopping server interrupts."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.middleware.outer_middleware import Exchange, OuterMiddleware

SCOPE = {"type": "http", "method": "PUT", "path": "/v1/datasets/ds_1/content", "headers": []}


async def _cancelled(app: ASGIApp, seen: list[Exchange], method: str = "PUT") -> list[Any]:
    """Return the messages of a request to ``app`` that is cancelled before its end."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return await asyncio.Event().wait()

    task = asyncio.create_task(OuterMiddleware(app, (seen.append,))(SCOPE | {"method": method}, receive, send))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    if task.cancelled():
        raise asyncio.CancelledError
    return sent


async def _reads(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()


async def _answers(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await receive()


def test_an_interrupted_request_gets_503_with_retry_after() -> None:
    seen: list[Exchange] = []
    start, body = asyncio.run(_cancelled(_reads, seen))
    problem = json.loads(body["body"])
    assert (start["status"], problem["code"]) == (503, "dependency_unavailable")
    assert b"retry-after" in dict(start["headers"])
    assert [exchange.status for exchange in seen] == [503]


@pytest.mark.parametrize(("method", "open_question"), [("POST", True), ("DELETE", True), ("GET", False)])
def test_the_answer_to_an_interrupted_write_denies_no_effect(method: str, open_question: bool) -> None:
    """W10: the thread of a request may still commit, so a blind repetition may be charged twice."""
    body = asyncio.run(_cancelled(_reads, [], method))[1]
    assert ("with the same Idempotency-Key" in json.loads(body["body"])["detail"]) is open_question


def test_an_answer_that_has_begun_is_cut_off() -> None:
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_cancelled(_answers, []))
