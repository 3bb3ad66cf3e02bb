"""The access walk: every operation, every caller, another tenant's ids in every position.

An object that the caller may not see is answered with 404.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.dashboard.problem_pages import is_page
from app.main import create_app
from tests.access.positions import operations, positions
from tests.access.rules import CALLERS, RULES, Rule
from tests.access.world import MADE_UP, SECRETS, SharedWorld, World, make_world
from tests.factories.transport import AppTransport
from tests.factories.worker import House

OVERSEERS = frozenset({"admin", "auditor"})
ROLES = ("admin", "auditor", "owner", "analyst")
CODES = {401: "unauthenticated", 403: "forbidden", 404: "not_found"}
UNDESCRIBED = frozenset({"/openapi.json", "/docs/guide", "/docs/guide/{address:path}"})  # public files
ELSEWHERE = ("11.0.0.1", 50_000)


@pytest.fixture
def application(house: House) -> FastAPI:
    return create_app(house.services)


@pytest.fixture(scope="module")
def shared_world(open_house: Callable[[], AbstractContextManager[House]]) -> Iterator[SharedWorld]:
    @contextmanager
    def open_world() -> Iterator[World]:
        with open_house() as house:
            transport = AppTransport(create_app(house.services), client=ELSEWHERE)
            with httpx.Client(transport=transport, base_url="http://corevault.test") as client:
                yield make_world(house, client)

    with closing(SharedWorld(open_world)) as shared:
        yield shared


@pytest.fixture
def world(shared_world: SharedWorld) -> Iterator[World]:
    with shared_world.use() as world:
        yield world


def test_every_position_of_every_operation_has_a_rule(application: FastAPI) -> None:
    """A new endpoint, or a new id in a call, needs a rule here."""
    assert set(positions(application.openapi())) == set(RULES)


def test_every_rule_names_every_caller() -> None:
    assert {name for name, rule in RULES.items() if set(rule.expected) != set(CALLERS)} == set()


def test_no_route_escapes_the_document(application: FastAPI) -> None:
    described = {name.partition(" ")[2] for name, _ in operations(application.openapi())}
    paths = {route.path for route in application.routes if isinstance(route, Route)}
    assert {path for path in paths if not is_page(path)} == described | UNDESCRIBED  # tests/dashboard walks the pages


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(RULES), ids=" ".join)
def test_objects_of_another_tenant_are_not_found(world: World, name: tuple[str, str]) -> None:
    """W3: neither answers nor the state of the service depend on them."""
    operation, position = name
    rule, first = RULES[name], _first(world, operation, position)
    for caller in sorted(CALLERS, key=lambda each: each == rule.adds):
        before = world.state()
        answer = _call(world, caller, operation, rule, world.theirs)
        assert answer.status_code == rule.expected[caller], (caller, answer.text)
        _check_unchanged(world, before, rule, caller)
        if answer.status_code == 403:
            _check_roles(answer.json()["detail"], rule, caller)
        if caller not in OVERSEERS:
            _check_hidden(world, answer, first)
            if answer.status_code >= 400:
                _check_alike(answer, _call(world, caller, operation, rule, MADE_UP))
        if operation.startswith("GET "):
            head = _call(world, caller, operation.replace("GET", "HEAD", 1), rule, world.theirs)
            assert (head.status_code, head.content) == (answer.status_code, b""), caller


def _first(world: World, operation: str, position: str) -> httpx.Response | None:
    """Make the same call as the other tenant, whose answer is recorded."""
    if not position.startswith("header:"):
        return None
    holder = "administrator" if "/api-keys" in operation else "tenant"
    answer = _call(world, holder, operation, RULES[operation, position], world.theirs)
    assert answer.status_code < 300, answer.text
    return answer


def _call(world: World, caller: str, operation: str, rule: Rule, ids: dict[str, str]) -> httpx.Response:
    method, _, template = operation.partition(" ")
    path = template.format_map(ids | {parameter: ids[kind] for parameter, kind in rule.instead.items()})
    return world.call(caller, method, path, **rule.options(world, ids))


def _check_unchanged(world: World, before: Any, rule: Rule, caller: str) -> None:
    after = world.state()
    if caller != rule.adds:
        assert after == before, caller
    elif caller not in OVERSEERS:
        tables, files = before
        for table, found in tables.items():
            assert set(found) <= set(after[0][table]), f"{caller} may add to {table}, and change nothing"
        assert set(files) <= set(after[1])


def _check_roles(detail: str, rule: Rule, caller: str) -> None:
    """Check that a refusal names the required role and the caller's role."""
    takes = [role for role in ROLES if rule.expected.get(role, 200) != 403]
    assert any(role in detail.partition("yours")[0] for role in takes), (caller, detail)
    assert f"yours is of the role {caller}" in detail, (caller, detail)


def _check_hidden(world: World, answer: httpx.Response, first: httpx.Response | None) -> None:
    """Check that the answer has no data of the other tenant.

    Text that the caller sent is allowed.
    """
    theirs = {*SECRETS, *world.theirs.values(), *([] if first is None else [str(first.json().get("id"))])}
    typed = answer.request.content.decode() + str(answer.request.url)
    shown = answer.text + json.dumps(dict(answer.headers))
    assert not [word for word in theirs if word in shown and word not in typed]


def _check_alike(answer: httpx.Response, other: httpx.Response) -> None:
    """Check that hidden and missing objects have the same answer."""
    assert answer.headers["content-type"] == other.headers["content-type"]
    if answer.request.method != "HEAD":
        shown, made_up = ({**each.json(), "request_id": ""} for each in (answer, other))
        assert shown == made_up
        assert shown["code"] == CODES[answer.status_code]
    assert {name for name in answer.headers if name != "x-request-id"} == {
        name for name in other.headers if name != "x-request-id"
    }
