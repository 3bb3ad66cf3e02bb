"""OpenID Connect: verification of tokens, callers, and fetching of keys."""

import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from sqlalchemy import select

from app.auth.identities import find_or_create
from app.auth.models import ApiKey
from app.auth.service import check_may_read_on, check_still_valid
from app.config import Settings
from app.db import BackgroundWriter, now
from app.errors import CorevaultError, DependencyUnavailable, Forbidden, Unauthenticated
from app.main import _build_sign_in, create_app
from app.oidc import Documents, Provider, ProviderKeys, TokenVerifier
from app.oidc.documents import LARGEST_BYTES
from app.oidc.tokens import LEEWAY_SECONDS
from app.services import Services
from tests.auth.provider import AUDIENCE, SignInService, sign_in_service
from tests.factories import rows
from tests.factories.datasets import declared, everything, problem
from tests.factories.transport import AppTransport

ROLES = {"vault-owner": "owner", "vault-analyst": "analyst", "vault-admin": "admin", "owner": "owner"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SignInService]:
    with sign_in_service(tmp_path) as running:
        yield running


def _verifier(service: SignInService, *, jwks_url: str | None = None, role_claim: str = "roles") -> TokenVerifier:
    provider = Provider(service.issuer, AUDIENCE, role_claim, ROLES)
    return TokenVerifier(provider, ProviderKeys(Documents(service.authority), service.issuer, jwks_url))


@pytest.fixture
def signed_in(services: Services, service: SignInService) -> Iterator[Services]:
    background = BackgroundWriter(services.database)
    yield replace(services, tokens=_verifier(service), background=background)
    background.close()


@pytest.fixture
def calls(signed_in: Services) -> Iterator[httpx.Client]:
    with httpx.Client(transport=AppTransport(create_app(signed_in)), base_url="http://corevault.test") as client:
        yield client


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA", "RS256"])
def test_a_valid_token_is_accepted(service: SignInService, algorithm: str) -> None:
    service.new_key("other", algorithm)
    identity = _verifier(service).verify(service.token("other"))
    assert (identity.issuer, identity.subject, identity.role) == (service.issuer, "canary-subject", "owner")
    assert "canary" not in repr(identity)


@pytest.mark.parametrize("audience", [AUDIENCE, ["other", AUDIENCE]])
def test_an_audience_may_be_one_of_several(service: SignInService, audience: Any) -> None:
    assert _verifier(service).verify(service.token(aud=audience)).role == "owner"


def _unsigned(service: SignInService) -> str:
    head = {"alg": "none", "typ": "JWT", "kid": "first"}
    return f"{_encoded(head)}.{_encoded(service.claims())}."


def _by_public_key(service: SignInService) -> str:
    """Make a token with an HMAC under the public key (algorithm confusion)."""
    secret = service.answers["/keys"][2]
    head, body = (_encoded(part) for part in ({"alg": "HS256", "typ": "JWT", "kid": "first"}, service.claims()))
    signature = hmac.digest(secret, f"{head}.{body}".encode(), "sha256")
    return f"{head}.{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def _encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def _altered(service: SignInService) -> str:
    head, _, signature = service.token().split(".")
    return f"{head}.{_encoded(service.claims(roles=['vault-admin']))}.{signature}"


def _claiming(**changes: Any) -> Callable[[SignInService], str]:
    return lambda service: service.token(**changes)


BAD: dict[str, Callable[[SignInService], str]] = {
    "unsigned": _unsigned,
    "signed with the public key": _by_public_key,
    "altered": _altered,
    "expired": _claiming(exp=int(time.time()) - 60),
    "not yet valid": _claiming(nbf=int(time.time()) + 86_400),
    "issued in the future": _claiming(iat=int(time.time()) + 86_400),
    "of another issuer": _claiming(iss="https://elsewhere.example"),
    "for another audience": _claiming(aud="elsewhere"),
    "for several others": _claiming(aud=["elsewhere", "anywhere"]),
    "without an expiry": _claiming(exp=None),
    "without an issue time": _claiming(iat=None),
    "without an audience": _claiming(aud=None),
    "without an issuer": _claiming(iss=None),
    "without a subject": _claiming(sub=None),
    "with an empty subject": _claiming(sub=""),
    "with an endless subject": _claiming(sub="s" * 256),
    "with a text for an expiry": _claiming(exp="tomorrow"),
    "of an unknown key": lambda service: service.token(header={"kid": "second"}),
    "without a key's name": lambda service: jwt.encode(service.claims(), service.keys["first"][1], "ES256"),
    "with critical extensions": lambda service: service.token(header={"crit": ["b64"], "b64": True}),
    "too long": _claiming(extra="e" * 20_000),
    "two parts": lambda service: service.token().rpartition(".")[0],
    "no parts": lambda _: "canary-7461",
    "empty parts": lambda _: "..",
}


@pytest.mark.parametrize("kind", BAD)
def test_an_invalid_token_is_refused_and_changes_nothing(
    calls: httpx.Client, signed_in: Services, service: SignInService, kind: str
) -> None:
    before = everything(signed_in.database, signed_in.areas)
    refused = calls.post("/v1/datasets", json={}, headers=_bearer(BAD[kind](service)))
    problem(refused, 401, "unauthenticated")
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert everything(signed_in.database, signed_in.areas) == before


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


@pytest.mark.parametrize(
    "roles", [None, [], ["unknown"], "unknown", 7, {"owner": True}, ["vault-owner", "vault-admin"]]
)
def test_a_token_without_exactly_one_role_is_forbidden(calls: httpx.Client, service: SignInService, roles: Any) -> None:
    problem(calls.get("/v1/me", headers=_bearer(service.token(roles=roles))), 403, "forbidden")


@pytest.mark.parametrize("roles", ["vault-owner", ["vault-owner"], ["other", "vault-owner", "owner"]])
def test_the_settings_map_claims_to_roles(service: SignInService, roles: Any) -> None:
    assert _verifier(service).verify(service.token(roles=roles)).role == "owner"


def test_the_role_may_be_in_a_nested_claim(service: SignInService) -> None:
    verifier = _verifier(service, role_claim="realm_access.roles")
    token = service.token(roles=None, realm_access={"roles": ["vault-analyst"]})
    assert verifier.verify(token).role == "analyst"
    with pytest.raises(Forbidden):
        verifier.verify(service.token(realm_access="owner"))


def test_a_caller_keeps_one_id_and_may_own_datasets(calls: httpx.Client, service: SignInService) -> None:
    first = calls.get("/v1/me", headers=_bearer(service.token())).json()
    other = calls.get("/v1/me", headers=_bearer(service.token(sub="somebody else"))).json()
    assert first["id"].startswith("key_")
    assert first["id"] != other["id"]
    caller = rows.Key(first["id"], service.token(), "owner")
    dataset = declared(calls, caller)["id"]
    assert calls.get(f"/v1/datasets/{dataset}", headers=_bearer(service.token())).status_code == 200
    refused = calls.get(f"/v1/datasets/{dataset}", headers=_bearer(service.token(sub="somebody else")))
    problem(refused, 404, "not_found")


def test_two_first_sign_ins_at_once_make_one_caller(
    calls: httpx.Client, signed_in: Services, service: SignInService
) -> None:
    tokens = [service.token() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda token: calls.get("/v1/me", headers=_bearer(token)), tokens))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_the_table_does_not_identify_anyone(calls: httpx.Client, signed_in: Services, service: SignInService) -> None:
    """W3: neither subject nor token is stored, and the listed name is not the person's."""
    token = service.token(email="canary@example.test")
    me = calls.get("/v1/me", headers=_bearer(token)).json()
    with signed_in.database.read() as session:
        kept = repr([vars(row) for row in session.scalars(select(ApiKey))])
    assert not [word for word in ("canary", token, service.issuer) if word in kept + json.dumps(me)]


def test_no_part_of_a_token_is_logged_or_counted(
    calls: httpx.Client,
    service: SignInService,
    admin: rows.Key,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """W3: tokens do not occur in logs and metrics, valid or not."""
    caplog.set_level("DEBUG")
    tokens = [service.token(email="canary@example.test"), *(bad(service) for bad in BAD.values())]
    for token in tokens:
        calls.get("/v1/me", headers=_bearer(token))
    shown = capsys.readouterr()
    written = shown.out + shown.err + caplog.text + calls.get("/metrics", headers=admin.headers).text
    assert "canary" not in written
    assert not [token for token in tokens if len(token) > 2 and token in written]


def test_a_revoked_caller_is_refused_with_any_token(
    calls: httpx.Client, admin: rows.Key, service: SignInService
) -> None:
    caller = calls.get("/v1/me", headers=_bearer(service.token())).json()["id"]
    problem(calls.post(f"/v1/api-keys/{caller}/rotate", headers=admin.headers), 409, "state_conflict")
    assert calls.delete(f"/v1/api-keys/{caller}", headers=admin.headers).status_code == 204
    problem(calls.get("/v1/me", headers=_bearer(service.token())), 401, "unauthenticated")


def test_an_oidc_administrator_does_not_replace_the_last_admin_key(
    calls: httpx.Client, admin: rows.Key, service: SignInService
) -> None:
    calls.get("/v1/me", headers=_bearer(service.token(roles="vault-admin")))
    problem(calls.delete(f"/v1/api-keys/{admin.id}", headers=admin.headers), 409, "state_conflict")


def test_each_token_states_the_role(
    calls: httpx.Client, signed_in: Services, admin: rows.Key, service: SignInService
) -> None:
    assert calls.get("/v1/me", headers=_bearer(service.token())).json()["role"] == "owner"
    assert calls.get("/v1/me", headers=_bearer(service.token(roles="vault-analyst"))).json()["role"] == "analyst"
    assert signed_in.background is not None
    signed_in.background.finish()
    listed = calls.get("/v1/api-keys", headers=admin.headers).json()["items"][0]
    assert (listed["role"], listed["source"], listed["prefix"]) == ("analyst", "oidc", None)
    assert listed["last_used_at"] is not None


class Clock:
    """A clock that moves only when a test moves it."""

    at = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.at)
    return clock


def test_an_unknown_key_is_fetched_at_most_once_a_minute(service: SignInService, clock: Clock) -> None:
    verifier = _verifier(service, jwks_url=service.jwks_url)
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
    verifier, token = _verifier(service), service.token()
    verifier.verify(token)
    service.answer("/keys", {"keys": []})
    clock.at += 3601
    with pytest.raises(Unauthenticated):
        verifier.verify(token)


def test_cached_keys_stay_valid_while_the_provider_is_away(service: SignInService, clock: Clock) -> None:
    verifier = _verifier(service)
    verifier.verify(service.token())
    service.answer("/keys", {}, 503)
    clock.at += 3601
    assert verifier.verify(service.token()).role == "owner"


def test_no_token_is_accepted_with_keys_older_than_a_day(service: SignInService, clock: Clock) -> None:
    """They may have been withdrawn. The provider is asked again during that day."""
    verifier = _verifier(service)
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
    refused = calls.get("/v1/me", headers=_bearer(service.token()))
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


def test_api_keys_work_together_with_tokens(calls: httpx.Client, owner: rows.Key, service: SignInService) -> None:
    assert calls.get("/v1/me", headers=owner.headers).json()["id"] == owner.id
    assert service.asked == []


def test_without_a_provider_tokens_are_refused(client: httpx.Client, service: SignInService) -> None:
    problem(client.get("/v1/me", headers=_bearer(service.token())), 401, "unauthenticated")


def test_incomplete_settings_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CorevaultError, match="COREVAULT_OIDC_AUDIENCE"):
        _build_sign_in(Settings(data_dir=tmp_path, oidc_issuer="https://sign-in.example"))
    assert _build_sign_in(Settings(data_dir=tmp_path)) == (None, None)
    assert (
        _build_sign_in(Settings(data_dir=tmp_path, oidc_issuer="https://sign-in.example", oidc_audience="a"))
        is not None
    )


def test_an_expired_token_ends_its_streams_and_uploads(signed_in: Services, service: SignInService) -> None:
    """Streams of events and uploads last until the end of the token's leeway."""
    assert signed_in.tokens is not None
    ends = int(time.time()) + 60
    identity = signed_in.tokens.verify(service.token(exp=ends))
    assert identity.expires_at.timestamp() == ends + LEEWAY_SECONDS
    assert signed_in.tokens.verify(service.token(exp=10**15)).expires_at.year == 9999
    key = find_or_create(signed_in.database, signed_in.identity_key, identity)
    with signed_in.database.write() as tx:
        for check in (check_still_valid, check_may_read_on):
            check(tx, key.id, identity.expires_at)
            with pytest.raises(Unauthenticated):
                check(tx, key.id, now())
