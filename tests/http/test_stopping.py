"""What a caller hears whose request a stopping server cannot wait for."""

import asyncio
import json
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from app.http.middleware.outer_middleware import Edge, Exchange

SCOPE = {"type": "http", "method": "PUT", "path": "/v1/datasets/ds_1/content", "headers": []}


async def _cancelled(app: ASGIApp, seen: list[Exchange], method: str = "PUT") -> list[Any]:
    """The messages that a request to ``app`` has sent when it is cancelled in its midst."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return await asyncio.Event().wait()

    task = asyncio.create_task(Edge(app, (seen.append,))(SCOPE | {"method": method}, receive, send))
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


def test_a_request_that_is_cut_short_is_told_to_come_again() -> None:
    seen: list[Exchange] = []
    start, body = asyncio.run(_cancelled(_reads, seen))
    problem = json.loads(body["body"])
    assert (start["status"], problem["code"]) == (503, "dependency_unavailable")
    assert b"retry-after" in dict(start["headers"])
    assert [exchange.status for exchange in seen] == [503]


@pytest.mark.parametrize(("method", "open_question"), [("POST", True), ("DELETE", True), ("GET", False)])
def test_a_change_that_may_have_happened_is_not_called_undone(method: str, open_question: bool) -> None:
    """W10: threads outlive the request that they work for; a job that is just asked for again may be charged twice."""
    body = asyncio.run(_cancelled(_reads, [], method))[1]
    assert ("under the same Idempotency-Key" in json.loads(body["body"])["detail"]) is open_question


def test_an_answer_that_has_begun_breaks_off() -> None:
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(_cancelled(_answers, []))
