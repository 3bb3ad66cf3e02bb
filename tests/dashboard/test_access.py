"""The access walk of the pages: every page, every role, another tenant's ids.

A page refuses exactly the calls that the endpoint with the same data refuses.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Route

from app.dashboard.problem_pages import is_page
from app.main import create_app
from tests.access.world import MADE_UP, SECRETS, SharedWorld, World, make_world
from tests.dashboard.browser import ADDRESS, code_of, open_browser
from tests.dashboard.html_checks import find_faults, remove_scripts
from tests.factories.worker import House

ROLES = ("admin", "auditor", "owner", "analyst")
OVERSEERS = frozenset({"admin", "auditor"})
Expected = Mapping[str, int]
READ: Expected = {"nobody": 303, "admin": 200, "auditor": 200, "owner": 404, "analyst": 404}
READ_LEDGER: Expected = {**READ, "analyst": 403}
LISTED: Expected = {"nobody": 303, "admin": 200, "auditor": 200, "owner": 200, "analyst": 200}
OVERSEE: Expected = {"nobody": 303, "admin": 200, "auditor": 200, "owner": 403, "analyst": 403}
KEYS: Expected = {**OVERSEE, "auditor": 403}
RUN: Expected = {"nobody": 303, "admin": 403, "auditor": 403, "owner": 404, "analyst": 404}
RUN_LISTED: Expected = {**RUN, "owner": 200, "analyst": 200}
JOB: Mapping[str, str] = {
    "dataset_id": "{dataset_id}",
    "family": "logistic-regression",
    "target": "income_gt_50k",
    "features": "age",
    "prior_scale": "1",
    "size": "20",
    "epsilon": "0.5",
    "once": "k" * 32,
}
LIMIT: Mapping[str, str] = {"limit_epsilon": "1.5", "version": "1", "once": "k" * 32}
OWN: Expected = {"nobody": 303, "admin": 403, "auditor": 403, "owner": 404, "analyst": 403}
OWN_PAGE: Expected = {**OWN, "owner": 200}
WITHOUT_TWIN = frozenset(
    {
        *(f"GET /dashboard/sign-in{rest}" for rest in ("", "/provider", "/callback")),
        *(f"GET /dashboard{rest}" for rest in ("/", "/{address:path}", "/static/{address}")),
        *(f"GET /dashboard/populations/{{dataset_id}}/{part}" for part in ("entries.csv", "chain")),
        *(f"GET /dashboard/datasets/{{dataset_id}}/{part}" for part in ("receipt", "content", "uploads/{upload_id}")),
        "GET /dashboard/releases/{release_id}/files/{name}",
    }
)
"""Pages without data, and answers that are data themselves."""
OPEN: Expected = {"nobody": 200, "admin": 200, "auditor": 200, "owner": 200, "analyst": 200}


@dataclass(frozen=True)
class Rule:
    """The expected answer to each role, and the form to send."""

    expected: Expected
    form: Mapping[str, str] = field(default_factory=dict)


RULES: Mapping[str, Rule] = {
    "GET /dashboard": Rule(LISTED),
    "GET /dashboard/populations/{dataset_id}": Rule(READ),
    "GET /dashboard/populations/{dataset_id}/entries.csv": Rule(READ_LEDGER),
    "GET /dashboard/populations/{dataset_id}/verification": Rule(READ_LEDGER),
    "GET /dashboard/populations/{dataset_id}/chain": Rule(READ_LEDGER),
    "POST /dashboard/populations/{dataset_id}/what-if/job": Rule(READ, {"job_epsilon": "0.5"}),
    "POST /dashboard/populations/{dataset_id}/what-if/limit": Rule(OWN, LIMIT),
    "POST /dashboard/populations/{dataset_id}/what-if/allocation": Rule(OWN, LIMIT),
    "POST /dashboard/populations/{dataset_id}/limit": Rule(OWN, LIMIT),
    "POST /dashboard/populations/{dataset_id}/allocation": Rule(OWN, LIMIT),
    "GET /dashboard/datasets/{dataset_id}": Rule(READ),
    "GET /dashboard/datasets/{dataset_id}/delete": Rule(OWN),
    "POST /dashboard/datasets/{dataset_id}/delete": Rule(OWN, {"confirmed_name": "canary-dataset"}),
    "GET /dashboard/datasets/{dataset_id}/receipt": Rule(OWN),
    "GET /dashboard/jobs": Rule(LISTED),
    "GET /dashboard/jobs/{job_id}": Rule(READ),
    "POST /dashboard/jobs/{job_id}/cancel": Rule({**READ, "admin": 403, "auditor": 403}),
    "GET /dashboard/price": Rule(RUN_LISTED),
    "POST /dashboard/price": Rule(RUN, JOB),
    "POST /dashboard/jobs": Rule(RUN, JOB),
    "GET /dashboard/declare": Rule(OWN_PAGE),
    "POST /dashboard/declare": Rule({**OWN_PAGE, "owner": 422}),
    "GET /dashboard/datasets/{dataset_id}/upload": Rule(OWN),
    "GET /dashboard/datasets/{dataset_id}/content": Rule(OWN),
    "POST /dashboard/datasets/{dataset_id}/uploads": Rule({**OWN, "owner": 415}),
    "GET /dashboard/datasets/{dataset_id}/uploads/{upload_id}": Rule(OWN),
    "PATCH /dashboard/datasets/{dataset_id}/uploads/{upload_id}": Rule(OWN),
    "DELETE /dashboard/datasets/{dataset_id}/uploads/{upload_id}": Rule(OWN),
    "POST /dashboard/datasets/{dataset_id}/uploads/{upload_id}/complete": Rule(OWN),
    "POST /dashboard/datasets/{dataset_id}/uploads/{upload_id}/delete": Rule(OWN),
    "GET /dashboard/releases": Rule(OPEN),
    "GET /dashboard/releases/{release_id}": Rule({**READ, "nobody": 404}),
    "GET /dashboard/releases/{release_id}/files/{name}": Rule({**READ, "nobody": 404}),
    "GET /dashboard/audit-log": Rule(OVERSEE),
    "GET /dashboard/keys": Rule(KEYS),
    "POST /dashboard/keys": Rule({**KEYS, "admin": 422}),
    "GET /dashboard/keys/{key_id}/revoke": Rule(KEYS),
    "POST /dashboard/keys/{key_id}/revoke": Rule({**KEYS, "admin": 303}),
    "GET /dashboard/system": Rule(OVERSEE),
    "GET /dashboard/sign-in": Rule(dict.fromkeys(ROLES, 303) | {"nobody": 200}),
    "POST /dashboard/sign-in": Rule(dict.fromkeys(("nobody", *ROLES), 401), {"key": "cv_wrong"}),
    "GET /dashboard/sign-in/provider": Rule(dict.fromkeys(ROLES, 303) | {"nobody": 404}),
    "GET /dashboard/sign-in/callback": Rule(dict.fromkeys(("nobody", *ROLES), 404)),
    "POST /dashboard/sign-out": Rule(dict.fromkeys(("nobody", *ROLES), 303)),
    "GET /dashboard/static/{address}": Rule(dict.fromkeys(("nobody", *ROLES), 404)),
    "GET /dashboard/": Rule(dict.fromkeys(("nobody", *ROLES), 308)),
    "GET /dashboard/{address:path}": Rule(dict.fromkeys(("nobody", *ROLES), 404)),
}


@pytest.fixture(scope="module")
def shared_world(open_house: Callable[[], AbstractContextManager[House]]) -> Iterator[SharedWorld]:
    @contextmanager
    def open_world() -> Iterator[World]:
        with open_house() as house, open_browser(create_app(house.services)) as client:
            yield make_world(house, client)

    with closing(SharedWorld(open_world)) as shared:
        yield shared


@pytest.fixture
def world(shared_world: SharedWorld) -> Iterator[World]:
    with shared_world.use() as world:
        yield world


@pytest.fixture
def pages(world: World) -> FastAPI:
    """Make the application of the world's house."""
    return create_app(world.house.services)


def test_every_page_has_a_rule(pages: FastAPI) -> None:
    """A new page needs a rule here."""
    routes = [route for route in pages.routes if isinstance(route, Route) and is_page(route.path)]
    assert {f"{method} {route.path}" for route in routes for method in route.methods or () if method != "HEAD"} == set(
        RULES
    )


@pytest.mark.long
@pytest.mark.parametrize("page", sorted(RULES))
def test_pages_refuse_what_the_api_refuses(pages: FastAPI, world: World, page: str) -> None:
    rule = RULES[page]
    for caller in ("nobody", *ROLES):
        with open_browser(pages, world.callers[caller]) as browser:
            answer = _call(browser, page, rule, world.theirs)
            assert answer.status_code == rule.expected[caller], (caller, answer.text)
            assert answer.headers["content-security-policy"], caller
            if caller not in OVERSEERS:
                _check_hidden(answer, world)
            if answer.status_code in {403, 404} and caller not in OVERSEERS:
                other = _call(browser, page, rule, MADE_UP)
                assert _without_ids(answer, world.theirs) == _without_ids(other, MADE_UP), caller
                assert code_of(answer) == {403: "forbidden", 404: "not_found"}[answer.status_code]


@pytest.mark.parametrize("page", sorted(RULES))
def test_pages_are_well_formed_and_need_no_script(pages: FastAPI, world: World, page: str) -> None:
    """A page is complete as HTML.

    Nothing is inline, the policy names each script, and everything has its name.
    """
    rule = RULES[page]
    for caller in ROLES:
        with open_browser(pages, world.callers[caller]) as browser:
            answer = _call(browser, page, rule, world.theirs)
            text = answer.text if answer.headers.get("content-type", "").startswith("text/html") else ""
        text, scripts = remove_scripts(text)
        assert (scripts > 0) == ("script-src 'self'" in answer.headers["content-security-policy"]), caller
        for word in ("<script", "style=", "<style", " onclick", " onload", "javascript:", 'src="http', "<iframe"):
            assert word not in text, (caller, word)
        if text:
            assert find_faults(text) == [], caller
            assert '<html lang="en">' in text
            assert 'href="#main"' in text


@pytest.mark.parametrize("page", sorted(name for name in RULES if "{" in name and name.startswith("GET")))
def test_pages_with_data_are_well_formed(pages: FastAPI, world: World, page: str) -> None:
    """The pages of the tenant who owns the objects."""
    with open_browser(pages, world.callers["tenant"]) as browser:
        answer = _call(browser, page, RULES[page], world.theirs)
        if answer.headers.get("content-type", "").startswith("text/html"):
            text, _ = remove_scripts(answer.text)
            assert find_faults(text) == []


@pytest.mark.parametrize("caller", ["tenant", "administrator"])
def test_every_page_names_its_twin_in_the_api(pages: FastAPI, world: World, caller: str) -> None:
    """A GET answers with JSON, and the API has every other call."""
    key, calls = world.callers[caller], list_operations(pages)
    assert key is not None
    with open_browser(pages, key) as browser:
        for page in (name for name in RULES if name.startswith("GET") and name not in WITHOUT_TWIN):
            answer = _call(browser, page, RULES[page], world.theirs)
            if answer.status_code == 403:
                continue
            twin = html.unescape(answer.text.partition('<section class="twin"')[2].partition("</section>")[0])
            found = re.findall(r"<code>(GET|POST|PUT|DELETE) ([^<]+)</code>", twin)
            assert found, page
            for method, path in found:
                assert f"{ADDRESS}{path}" in twin
                assert (method, re.sub(r"_[0-9a-z]{26}", "_", path.partition("?")[0])) in calls, path
                if method == "GET":
                    stated = world.client.get(path, headers=key.headers)
                    assert stated.headers["content-type"] == "application/json", path


def list_operations(pages: FastAPI) -> set[tuple[str, str]]:
    """List the operations of the API, with prefixes in place of ids."""
    prefixes = {"dataset_id": "ds_", "job_id": "job_", "release_id": "rel_", "key_id": "key_", "upload_id": "up_"}
    paths = pages.openapi()["paths"]
    return {(method.upper(), path.format_map(prefixes)) for path, methods in paths.items() for method in methods}


def test_faults_of_a_page_are_found() -> None:
    broken = (
        '<main><h1>a</h1><h3>b</h3><a href="#x"></a><input id="i"><p><div></div></p><svg></svg><script></script>'
        '<img src="https://elsewhere.test"><b style="x">'
    )
    assert len(find_faults(f"<title>t</title>{broken}")) >= 9


def _call(browser: httpx.Client, page: str, rule: Rule, ids: Mapping[str, str]) -> httpx.Response:
    method, _, template = page.partition(" ")
    path = template.replace("{address:path}", "nowhere").format_map({**ids, "address": "nowhere", "name": "points.csv"})
    if method == "GET":
        return browser.get(path)
    return browser.request(
        method, path, data={"": "", **{name: value.format_map(ids) for name, value in rule.form.items()}}
    )


def _check_hidden(answer: httpx.Response, world: World) -> None:
    shown = answer.text + str(answer.headers)
    typed = str(answer.request.url) + answer.request.content.decode()
    assert not [word for word in (*SECRETS, *world.theirs.values()) if word in shown and word not in typed]


def _without_ids(answer: httpx.Response, ids: Mapping[str, str]) -> str:
    text = answer.text
    for name, value in ids.items():
        text = text.replace(value, name)
    request_id = answer.headers["x-request-id"]
    return text.replace(request_id, "")
