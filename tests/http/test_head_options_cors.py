"""HEAD, OPTIONS and CORS."""

import httpx
import pytest

from tests.factories import rows


def test_head_is_get_without_its_body(drawings: httpx.Client) -> None:
    got, head = drawings.get("/health/live"), drawings.head("/health/live")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["Content-Length"] == got.headers["Content-Length"]


def test_options_lists_the_methods(drawings: httpx.Client) -> None:
    answer = drawings.options("/v1/drawings")
    assert (answer.status_code, answer.headers["Allow"]) == (204, "GET, HEAD, OPTIONS, POST")
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert drawings.options("/v1/nothing").status_code == 404


@pytest.mark.parametrize("path", ["/v1/me", "/v1/drawings", "/health/live", "/v1/keys", "/v1/releasesx"])
def test_only_release_reads_have_cors_headers(drawings: httpx.Client, path: str) -> None:
    answer = drawings.get(path, headers={"Origin": "http://elsewhere.test"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_every_site_may_read_public_releases_without_credentials(drawings: httpx.Client) -> None:
    answer = drawings.get("/v1/releases/rel_0", headers={"Origin": "http://elsewhere.test"})
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in answer.headers


def test_a_read_with_a_key_has_no_cors_headers(drawings: httpx.Client, owner: rows.Key) -> None:
    answer = drawings.get("/v1/releases/rel_0", headers=owner.headers)
    assert "Access-Control-Allow-Origin" not in answer.headers
