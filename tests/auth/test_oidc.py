"""OpenID Connect: verification of tokens, and their callers."""

import base64
import hmac
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
from app.db import now
from app.errors import CorevaultError, Forbidden, Unauthenticated
from app.main import _build_sign_in
from app.oidc.tokens import LEEWAY_SECONDS
from app.services import Services
from tests.auth.provider import AUDIENCE, SignInService, make_headers, make_verifier
from tests.factories import rows
from tests.factories.datasets import declared, everything, problem


@pytest.mark.parametrize("algorithm", ["ES256", "EdDSA", "RS256"])
def test_a_valid_token_is_accepted(service: SignInService, algorithm: str) -> None:
    service.new_key("other", algorithm)
    identity = make_verifier(service).verify(service.token("other"))
    assert (identity.issuer, identity.subject, identity.role) == (service.issuer, "canary-subject", "owner")
    assert "canary" not in repr(identity)


@pytest.mark.parametrize("audience", [AUDIENCE, ["other", AUDIENCE]])
def test_an_audience_may_be_one_of_several(service: SignInService, audience: Any) -> None:
    assert make_verifier(service).verify(service.token(aud=audience)).role == "owner"


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
    refused = calls.post("/v1/datasets", json={}, headers=make_headers(BAD[kind](service)))
    problem(refused, 401, "unauthenticated")
    assert refused.headers["WWW-Authenticate"] == "Bearer"
    assert everything(signed_in.database, signed_in.areas) == before


@pytest.mark.parametrize(
    "roles", [None, [], ["unknown"], "unknown", 7, {"owner": True}, ["vault-owner", "vault-admin"]]
)
def test_a_token_without_exactly_one_role_is_forbidden(calls: httpx.Client, service: SignInService, roles: Any) -> None:
    problem(calls.get("/v1/me", headers=make_headers(service.token(roles=roles))), 403, "forbidden")


@pytest.mark.parametrize("roles", ["vault-owner", ["vault-owner"], ["other", "vault-owner", "owner"]])
def test_the_settings_map_claims_to_roles(service: SignInService, roles: Any) -> None:
    assert make_verifier(service).verify(service.token(roles=roles)).role == "owner"


def test_the_role_may_be_in_a_nested_claim(service: SignInService) -> None:
    verifier = make_verifier(service, role_claim="realm_access.roles")
    token = service.token(roles=None, realm_access={"roles": ["vault-analyst"]})
    assert verifier.verify(token).role == "analyst"
    with pytest.raises(Forbidden):
        verifier.verify(service.token(realm_access="owner"))


def test_a_caller_keeps_one_id_and_may_own_datasets(calls: httpx.Client, service: SignInService) -> None:
    first = calls.get("/v1/me", headers=make_headers(service.token())).json()
    other = calls.get("/v1/me", headers=make_headers(service.token(sub="somebody else"))).json()
    assert first["id"].startswith("key_")
    assert first["id"] != other["id"]
    caller = rows.Key(first["id"], service.token(), "owner")
    dataset = declared(calls, caller)["id"]
    assert calls.get(f"/v1/datasets/{dataset}", headers=make_headers(service.token())).status_code == 200
    refused = calls.get(f"/v1/datasets/{dataset}", headers=make_headers(service.token(sub="somebody else")))
    problem(refused, 404, "not_found")


def test_two_first_sign_ins_at_once_make_one_caller(
    calls: httpx.Client, signed_in: Services, service: SignInService
) -> None:
    tokens = [service.token() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda token: calls.get("/v1/me", headers=make_headers(token)), tokens))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["id"] for answer in answers}) == 1


def test_the_table_does_not_identify_anyone(calls: httpx.Client, signed_in: Services, service: SignInService) -> None:
    """W3: neither subject nor token is stored, and the listed name is not the person's."""
    token = service.token(email="canary@example.test")
    me = calls.get("/v1/me", headers=make_headers(token)).json()
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
        calls.get("/v1/me", headers=make_headers(token))
    shown = capsys.readouterr()
    written = shown.out + shown.err + caplog.text + calls.get("/metrics", headers=admin.headers).text
    assert "canary" not in written
    assert not [token for token in tokens if len(token) > 2 and token in written]


def test_a_revoked_caller_is_refused_with_any_token(
    calls: httpx.Client, admin: rows.Key, service: SignInService
) -> None:
    caller = calls.get("/v1/me", headers=make_headers(service.token())).json()["id"]
    problem(calls.post(f"/v1/api-keys/{caller}/rotate", headers=admin.headers), 409, "state_conflict")
    assert calls.delete(f"/v1/api-keys/{caller}", headers=admin.headers).status_code == 204
    problem(calls.get("/v1/me", headers=make_headers(service.token())), 401, "unauthenticated")


def test_an_oidc_administrator_does_not_replace_the_last_admin_key(
    calls: httpx.Client, admin: rows.Key, service: SignInService
) -> None:
    calls.get("/v1/me", headers=make_headers(service.token(roles="vault-admin")))
    problem(calls.delete(f"/v1/api-keys/{admin.id}", headers=admin.headers), 409, "state_conflict")


def test_each_token_states_the_role(
    calls: httpx.Client, signed_in: Services, admin: rows.Key, service: SignInService
) -> None:
    assert calls.get("/v1/me", headers=make_headers(service.token())).json()["role"] == "owner"
    assert calls.get("/v1/me", headers=make_headers(service.token(roles="vault-analyst"))).json()["role"] == "analyst"
    assert signed_in.background is not None
    signed_in.background.finish()
    listed = calls.get("/v1/api-keys", headers=admin.headers).json()["items"][0]
    assert (listed["role"], listed["source"], listed["prefix"]) == ("analyst", "oidc", None)
    assert listed["last_used_at"] is not None


def test_api_keys_work_together_with_tokens(calls: httpx.Client, owner: rows.Key, service: SignInService) -> None:
    assert calls.get("/v1/me", headers=owner.headers).json()["id"] == owner.id
    assert service.asked == []


def test_without_a_provider_tokens_are_refused(client: httpx.Client, service: SignInService) -> None:
    problem(client.get("/v1/me", headers=make_headers(service.token())), 401, "unauthenticated")


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
