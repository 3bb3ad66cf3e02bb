"""The Host header, which protects against DNS rebinding."""

from collections.abc import Iterator

import httpx
import pytest

from app.http.middleware.addresses import AllowedHosts
from app.main import create_app
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import problem
from tests.factories.transport import AppTransport

HOSTS = AllowedHosts.of(["Vault.example", "[2001:db8::7]"])


@pytest.fixture
def called(services: Services) -> Iterator[httpx.Client]:
    transport = AppTransport(create_app(services, hosts=HOSTS))
    with httpx.Client(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize(
    "host",
    [
        "vault.example",
        "VAULT.example:8443",
        "vault.example.",
        "localhost:8000",
        "127.0.0.1",
        "[::1]:8000",
        "[2001:DB8::7]",
    ],
)
def test_an_allowed_name_is_answered(called: httpx.Client, owner: rows.Key, host: str) -> None:
    assert called.get("/v1/me", headers=owner.headers | {"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "vault.example.evil.example",
        "evil.example:80",
        "vault.example@evil.example",
        "[::2]",
        "::1:1",
    ],
)
@pytest.mark.parametrize("path", ["/v1/me", "/v1/releases", "/metrics", "/openapi.json", "/v1/nowhere"])
def test_another_name_is_refused_on_every_route(called: httpx.Client, owner: rows.Key, path: str, host: str) -> None:
    refused = called.get(path, headers=owner.headers | {"Host": host})
    body = problem(refused, 422, "invalid_request")
    assert "COREVAULT_ALLOWED_HOSTS" in body["detail"]
    assert "evil" not in refused.text


def test_health_probes_may_use_any_name(called: httpx.Client) -> None:
    for path in ("/health/live", "/health/ready"):
        assert called.get(path, headers={"Host": "10.1.2.3:8000"}).status_code == 200


def _scope(*hosts: str) -> dict[str, object]:
    headers = [(b"host", host.encode()) for host in hosts]
    return {"type": "http", "path": "/v1/me", "headers": headers, "server": ("10.1.2.3", 8000)}


def test_the_address_of_the_connection_is_allowed() -> None:
    assert HOSTS.admits(_scope("10.1.2.3:8000"))
    assert not HOSTS.admits(_scope("10.1.2.4:8000"))


def test_a_missing_and_a_repeated_host_are_refused() -> None:
    assert not HOSTS.admits(_scope())
    assert not HOSTS.admits(_scope("localhost", "localhost"))
