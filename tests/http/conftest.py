"""Fixtures: the application with a few test routes, for the rules of every route."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import httpx
import pytest
from fastapi import FastAPI, Query
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import AwareDatetime, Field
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from app.auth.caller import AnyCaller
from app.errors import BudgetExceeded, StateConflict
from app.http.requests.bodies import Body
from app.http.requests.idempotency import Answer, Idempotent, answer_once
from app.http.requests.pagination import Page, Paging, make_page
from app.http.requests.routing import make_router
from app.services import Shared
from tests.factories.transport import AppTransport

CANARY = "canary-7461"


class Circle(Body):
    kind: Literal["circle"]
    radius: Annotated[float, Field(gt=0)]


class Square(Body):
    kind: Literal["square"]
    side: int


class Drawing(Body):
    name: Annotated[str, Field(min_length=1, max_length=10)] = "a"
    at: AwareDatetime | None = None
    shapes: Annotated[list[Annotated[Circle | Square, Field(discriminator="kind")]], Field(max_length=3)] = []
    weights: dict[str, float] = {}
    free: dict[str, Any] = {}


router = make_router("/v1/drawings", "drawings")


@router.post("", status_code=201)
def draw(services: Shared, caller: AnyCaller, request: Idempotent, body: Drawing) -> JSONResponse:
    with services.database.write() as tx:

        def produce() -> Answer:
            tx.execute(text("CREATE TABLE IF NOT EXISTS drawn (name TEXT)"))
            tx.execute(text("INSERT INTO drawn VALUES (:name)"), {"name": body.name})
            count = tx.scalar(text("SELECT count(*) FROM drawn"))
            if body.name == "refused":
                raise StateConflict
            return Answer(201, {"name": body.name, "count": count, "secret": CANARY}, {"Location": "/v1/drawings/1"})

        return answer_once(tx, caller.id, request, produce, omit=frozenset({"secret"}))


@router.get("")
def listed(paging: Paging, kind: Annotated[str | None, Query(max_length=5)] = None) -> Page[int]:
    after = paging.after_sequence()
    rows = list(range(7 if after is None else after - 1, 0, -1))[: paging.limit + 1]
    return make_page(rows, paging, lambda row: row, lambda row: row)


@router.get("/broken")
def broken() -> None:
    raise ZeroDivisionError(CANARY)


@router.get("/away")
def away() -> None:
    raise OperationalError(CANARY, {}, ConnectionRefusedError(CANARY))


@router.get("/half")
def half() -> StreamingResponse:
    def chunks() -> Iterator[bytes]:
        yield b"first"
        raise ZeroDivisionError(CANARY)

    return StreamingResponse(chunks())


@router.get("/poor")
def poor() -> None:
    raise BudgetExceeded(requested={"epsilon": 0.5}, epsilon_after=2.1)


@router.delete("/broken")
def remove() -> Response:
    return Response(status_code=204)


@pytest.fixture
def drawings(application: FastAPI) -> Iterator[httpx.Client]:
    application.router.routes.extend(router.routes)
    with httpx.Client(transport=AppTransport(application), base_url="http://corevault.test") as client:
        yield client
