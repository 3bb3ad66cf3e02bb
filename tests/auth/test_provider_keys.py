"""Keys of an OpenID Connect provider: which ones are used, and how they are fetched."""

import json
import time
from collections.abc import Callable

import httpx
import pytest

from app.errors import DependencyUnavailable, Unauthenticated
from app.oidc import Documents, ProviderKeys
from app.oidc.documents import LARGEST_BYTES
from tests.auth.provider import SignInService, make_headers, make_verifier
from tests.factories.datasets import problem


@pytest.mark.parametrize("algorithm", ["HS256", "none", "RS384", "PS256", "ES384"])
def test_keys_for_other_algorithms_are_not_used(service: SignInService, algorithm: str) -> None:
    service.new_key("rsa", "RS256")
    listed = json.loads(service.answers["/keys"][2])["keys"]
    for each in listed:
        each["alg"] = algorithm
    symmetric = {"kty": "oct", "k": "c2VjcmV0", "kid": "oct", "alg": "HS256"}
    service.answer("/keys", {"keys": [*listed, symmetric]})
    found = ProviderKeys(Documents(service.authority), service.issuer)
    assert [found.find(name) for name in ("rsa", "first", "oct")] == [None] * 3


def test_short_rsa_keys_and_keys_for_encryption_are_not_used(service: SignInService) -> None:
    service.new_key("short", "RS256", bits=1024)
    listed = json.loads(service.answers["/keys"][2])["keys"]
    listed[0]["use"] = "enc"
    service.answer("/keys", {"keys": [*listed, "no key", {"kid": 7}, {"kid": "bad", "kty": "EC", "crv": "P-256"}]})
    found = ProviderKeys(Documents(service.authority), service.issuer)
    assert [found.find(name) for name in ("short", "first", "bad")] == [None] * 3


@pytest.mark.parametrize("name", ["alg", "crv", "n", "e", "x", "kty", "use", "d", "oth"])
def test_a_malformed_key_does_not_hide_the_others(service: SignInService, name: str) -> None:
    service.new_key("rsa", "RS256")
    listed = json.loads(service.answers["/keys"][2])["keys"]
    wrong = [7, True, [], ["RS256"], {"a": 1}, "", "none", "A", "\u00e9", 10**400, None]
    crooked = [each | {"kid": f"{place}", name: value} for place, value in enumerate(wrong) for each in listed]
    service.answer("/keys", {"keys": [*crooked, *listed]})
    found = ProviderKeys(Documents(service.authority), service.issuer)
    assert found.find("rsa") is not None


class Clock:
    """A clock that moves only when a test moves it."""

    at = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.at)
    return clock


def test_an_unknown_key_is_fetched_at_most_once_a_minute(service: SignInService, clock: Clock) -> None:
    verifier = make_verifier(service, jwks_url=service.jwks_url)
    for _ in range(3):
        verifier.verify(service.token())
    service.new_key("second")
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            verifier.verify(service.token("second"))
    assert service.asked == ["/keys"]
    clock.at += 60
    verifier.verify(service.token("second"))
    assert service.asked == ["/keys"] * 2


def test_a_withdrawn_key_is_refused_after_an_hour(service: SignInService, clock: Clock) -> None:
    verifier, token = make_verifier(service), service.token()
    verifier.verify(token)
    service.answer("/keys", {"keys": []})
    clock.at += 3601
    with pytest.raises(Unauthenticated):
        verifier.verify(token)


def test_cached_keys_stay_valid_while_the_provider_is_away(service: SignInService, clock: Clock) -> None:
    verifier = make_verifier(service)
    verifier.verify(service.token())
    service.answer("/keys", {}, 503)
    clock.at += 3601
    assert verifier.verify(service.token()).role == "owner"


def test_no_token_is_accepted_with_keys_older_than_a_day(service: SignInService, clock: Clock) -> None:
    """They may have been withdrawn. The provider is asked again during that day."""
    verifier = make_verifier(service)
    verifier.verify(service.token())
    listed = json.loads(service.answers["/keys"][2])
    service.answer("/keys", {}, 503)
    clock.at += 24 * 3600
    assert verifier.verify(service.token()).role == "owner"
    clock.at += 1
    with pytest.raises(DependencyUnavailable):
        verifier.verify(service.token())
    service.answer("/keys", listed)
    clock.at += 60
    assert verifier.verify(service.token()).role == "owner"


def _redirect(service: SignInService) -> None:
    service.answer("/elsewhere", json.loads(service.answers["/keys"][2]))
    service.answer("/keys", {}, 302, Location=f"{service.issuer}/elsewhere")


FAULTS: dict[str, Callable[[SignInService], None]] = {
    "redirected": _redirect,
    "failing": lambda service: service.answer("/keys", {}, 500),
    "a list": lambda service: service.answer("/keys", []),
    "without keys": lambda service: service.answer("/keys", {"keys": None}),
    "endless": lambda service: service.answer("/keys", {"keys": [], "more": "m" * LARGEST_BYTES}),
    "not json": lambda service: service.answers.update({"/keys": (200, {}, b"<html>")}),
    "of another issuer": lambda service: service.answer(
        "/.well-known/openid-configuration", {"issuer": "https://elsewhere.example", "jwks_uri": service.jwks_url}
    ),
    "in the clear": lambda service: service.answer(
        "/.well-known/openid-configuration",
        {"issuer": service.issuer, "jwks_uri": service.jwks_url.replace("https", "http")},
    ),
    "nowhere": lambda service: service.answer("/.well-known/openid-configuration", {"issuer": service.issuer}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_document_with_a_fault_is_not_used(calls: httpx.Client, service: SignInService, fault: str) -> None:
    """No redirect is followed and nothing is read without TLS. The caller gets a 503."""
    FAULTS[fault](service)
    refused = calls.get("/v1/me", headers=make_headers(service.token()))
    problem(refused, 503, "dependency_unavailable")
    assert "Retry-After" in refused.headers
    assert "/elsewhere" not in service.asked


def test_a_provider_with_an_untrusted_certificate_is_refused(service: SignInService) -> None:
    with pytest.raises(DependencyUnavailable):
        Documents().fetch(service.jwks_url)


def test_a_provider_is_never_asked_without_tls(service: SignInService) -> None:
    with pytest.raises(DependencyUnavailable):
        Documents(service.authority).fetch(service.jwks_url.replace("https", "http"))
    assert service.asked == []
