"""Cached reads of public releases give the answers of the route, without the database."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from app.errors import DependencyUnavailable
from app.main import create_app
from app.recently_used import LeastRecentlyUsed
from app.releases.http.formats import Part
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.transport import AppTransport
from tests.factories.worker import House

Released = Callable[..., str]


@pytest.fixture(params=list(Part))
def part(request: pytest.FixtureRequest) -> Part:
    return Part(request.param)


@pytest.fixture
def released(house: House, owner: rows.Key, part: Part) -> Released:
    def make(**fields: Any) -> str:
        grouped = {"method": "dp-groups", "privacy": {"epsilon": 0.1}, "parameters": {}} if part is Part.GROUPS else {}
        job_id = house.job(house.ready_dataset(owner, **fields), owner, **grouped)
        house.run(job_id)
        release_id = house.read(job_id).release_id
        assert release_id is not None
        return f"/v1/releases/{release_id}/{part}"

    return make


@pytest.fixture
def quick(house: House) -> FastAPI:
    return create_app(house.services)


def _client(application: FastAPI) -> httpx.Client:
    return httpx.Client(transport=AppTransport(application), base_url="http://corevault.test")


@pytest.fixture
def reader(quick: FastAPI) -> Iterator[httpx.Client]:
    with _client(quick) as client:
        yield client


def _show(answer: httpx.Response) -> tuple[int, dict[str, str], bytes]:
    headers = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    content = b"" if answer.status_code >= 400 else answer.content
    return answer.status_code, headers if answer.status_code < 400 else {}, content


@pytest.mark.long
def test_cache_and_route_give_the_same_answers(house: House, released: Released, reader: httpx.Client) -> None:
    path = released()
    etag = reader.get(path).headers["etag"]
    queries = ("", "?format=csv", "?format=xml", "?other=1", "?format=json&format=csv")
    headers: tuple[dict[str, str], ...] = (
        {},
        {"Accept": "text/csv;q=0.5, application/x-npz"},
        {"Accept": "image/png"},
        {"If-None-Match": etag},
        {"If-None-Match": '"other"'},
        {"If-Match": etag},
        {"If-Match": '"other"'},
        {"Range": "bytes=2-9"},
        {"Range": "bytes=-4", "If-Range": etag},
        {"Range": "bytes=999999999-"},
        {"Content-Encoding": "gzip"},
    )
    for query, method in product(queries, ("GET", "HEAD")):
        reader.get(path + query)
        for sent in headers:
            with _client(create_app(house.services)) as usual:
                expected = _show(usual.request(method, path + query, headers=sent))
            assert _show(reader.request(method, path + query, headers=sent)) == expected, (method, query, sent)


def test_a_cached_release_needs_no_database(
    house: House, released: Released, reader: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = released()
    whole = reader.get(path)

    def away() -> None:
        raise AssertionError

    monkeypatch.setattr(type(house.database), "read", away)
    assert reader.get(path).content == whole.content
    assert reader.get(path, headers={"If-None-Match": whole.headers["etag"]}).status_code == 304
    assert reader.head(path).headers["content-length"] == str(len(whole.content))
    assert reader.get(path, headers={"Range": "bytes=1-3"}).content == whole.content[1:4]


def test_a_private_release_is_never_cached(
    quick: FastAPI, released: Released, reader: httpx.Client, owner: rows.Key, part: Part
) -> None:
    """W3: the cache answers everybody."""
    path = released(releases_public=False)
    assert reader.get(path, headers=owner.headers).status_code == 200
    assert quick.state.public_releases.offers(path.split("/")[3], part) is None
    problem(reader.get(path), 404, "not_found")


def test_a_key_that_is_not_valid_is_refused_on_public_releases_too(released: Released, reader: httpx.Client) -> None:
    path = released()
    assert reader.get(path).status_code == 200
    problem(reader.get(path, headers={"Authorization": "Bearer cv_" + "0" * 43}), 401, "unauthenticated")


def test_a_fault_of_the_store_is_answered_by_the_route(
    house: House, released: Released, reader: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = released()
    assert reader.head(path).status_code == 200  # cached, without its bytes

    def away(_: object, __: str) -> None:
        raise DependencyUnavailable

    monkeypatch.setattr(type(house.areas.released), "open", away)
    problem(reader.get(path), 503, "dependency_unavailable")


def test_a_cached_read_is_counted_and_logged_under_its_route(
    released: Released, reader: httpx.Client, admin: rows.Key, part: Part
) -> None:
    path = released()
    for _ in range(3):
        reader.get(path)
    route = f"/v1/releases/{{release_id}}/{part}"
    line = f'corevault_http_requests_total{{method="GET",route="{route}",status="200"}} 3.0'
    assert line in reader.get("/metrics", headers=admin.headers).text


def test_the_least_recently_used_value_is_dropped_first() -> None:
    recent = LeastRecentlyUsed[str, int](10)
    recent.put("a", 1, 4)
    recent.put("b", 2, 4)
    assert recent.get("a") == 1
    recent.put("c", 3, 4)
    assert [recent.get(name) for name in "abc"] == [1, None, 3]
    recent.put("d", 4, 11)
    assert [recent.get(name) for name in "acd"] == [None, None, None]


def test_a_later_value_replaces_the_earlier_one_and_its_weight() -> None:
    recent = LeastRecentlyUsed[str, int](10)
    for value in range(5):
        recent.put("a", value, 6)
    recent.put("b", 9, 4)
    assert [recent.get(name) for name in "ab"] == [4, 9]
