"""Sign-in at the OpenID Connect provider."""

from dataclasses import replace
from pathlib import Path
from time import time
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.auth.models import SignIn
from app.config import Settings
from app.dashboard.pages import provider_sign_in
from app.errors import CorevaultError
from app.main import _build_sign_in, create_app
from app.services import Services
from support.chromium import Chromium, Page
from tests.auth.provider import SignInService
from tests.dashboard.appearance import check_appearance
from tests.dashboard.browser import code_of, open_browser
from tests.dashboard.html_checks import find_faults
from tests.dashboard.provider.steps import BEGIN, CALLBACK, CLIENT, begin, count_sessions, find_role, finish, make_flow
from tests.factories import rows


def test_a_person_signs_in_and_has_the_role_of_the_token(
    browser: httpx.Client, provider: SignInService, with_provider: Services
) -> None:
    address = begin(browser, "/dashboard/releases")
    asked = dict(parse_qsl(urlsplit(address).query))
    assert address.startswith(f"{provider.issuer}/authorization?")
    expected = {"response_type": "code", "client_id": CLIENT, "scope": "openid roles", "code_challenge_method": "S256"}
    assert expected.items() <= asked.items()
    assert asked["redirect_uri"] == f"http://corevault.test{CALLBACK}"
    assert len({asked[name] for name in ("state", "nonce", "code_challenge")}) == 3
    more = {"session_state": "s", "scope": "openid"}  # providers add parameters
    answer = finish(browser, provider.approve(address, roles=["analyst"]) | more)
    assert answer.status_code == 200, answer.text
    assert 'content="0; url=/dashboard/releases"' in answer.text
    assert find_faults(answer.text) == []
    assert find_role(browser) == "analyst"
    form, credentials = provider.redeemed[0]
    assert (len(form["code_verifier"]), credentials) == (43, None)
    assert form["code_verifier"] not in address


def test_the_person_has_one_id_here_and_at_the_api(
    browser: httpx.Client, provider: SignInService, with_provider: Services
) -> None:
    finish(browser, provider.approve(begin(browser)))
    token = {"Authorization": f"Bearer {provider.token()}"}
    caller = browser.get("/v1/me", headers=token).json()["id"]
    with with_provider.database.read() as session:
        assert session.scalars(sa.select(SignIn.key_id)).one() == caller


def test_cookies_are_strict_for_sessions_and_lax_for_attempts(browser: httpx.Client, provider: SignInService) -> None:
    attempt = browser.get(BEGIN)
    name, *attributes = attempt.headers["set-cookie"].split("; ")
    assert name.startswith("corevault-attempt=")
    assert {each.lower() for each in attributes} >= {"httponly", "path=/", "samesite=lax", "max-age=600"}
    cookies = finish(browser, provider.approve(attempt.headers["location"])).headers.get_list("set-cookie")
    session = next(each for each in cookies if each.startswith("corevault-session=ses_"))
    assert {"httponly", "path=/", "samesite=strict"} == {each.lower() for each in session.split("; ")[1:]}
    assert any(each.startswith('corevault-attempt="";') and "Max-Age=0" in each for each in cookies)


def test_cookies_over_https_are_secure_and_host_only(with_provider: Services, provider: SignInService) -> None:
    with open_browser(create_app(replace(with_provider, behind_tls=True))) as browser:
        begun = browser.get(BEGIN)
        attempt = begun.headers["set-cookie"]
        browser.cookies.set("__Host-corevault-attempt", attempt.partition("=")[2].partition(";")[0])
        cookies = finish(browser, provider.approve(begun.headers["location"])).headers.get_list("set-cookie")
    assert "redirect_uri=https%3A%2F%2Fcorevault.test" in begun.headers["location"]
    for each in (attempt, *cookies):
        assert each.startswith("__Host-corevault-")
        assert "; Secure" in each


def test_a_client_with_a_secret_uses_basic_authentication(services: Services, provider: SignInService) -> None:
    with open_browser(create_app(replace(services, code_flow=make_flow(provider, "s: é/")))) as browser:
        finish(browser, provider.approve(begin(browser)))
        assert find_role(browser) == "data owner"
    assert provider.redeemed[0][1] == "Basic " + "ZGFzaGJvYXJkOnMlM0ErJUMzJUE5JTJG"


@pytest.mark.parametrize("roles", [[], ["unknown"], ["owner", "admin"], None])
def test_a_person_without_exactly_one_role_is_refused(
    browser: httpx.Client, provider: SignInService, with_provider: Services, roles: Any
) -> None:
    answer = finish(browser, provider.approve(begin(browser), roles=roles))
    assert answer.status_code == 403
    assert "exactly one of the roles" in answer.text
    assert count_sessions(with_provider) == 0


def test_an_attempt_ends_after_ten_minutes(
    browser: httpx.Client, provider: SignInService, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = provider.approve(begin(browser))
    later = time() + provider_sign_in.SECONDS + 1
    monkeypatch.setattr(provider_sign_in, "time", lambda: later)
    answer = finish(browser, query)
    assert answer.status_code == 401
    assert "took too long" in answer.text
    assert provider.redeemed == []


def test_of_two_attempts_at_once_the_newer_one_counts(browser: httpx.Client, provider: SignInService) -> None:
    first, second = [provider.approve(begin(browser), sub=name) for name in ("a", "b")]
    assert finish(browser, first).status_code == 401
    assert find_role(browser) is None
    assert finish(browser, second).status_code == 200
    assert find_role(browser) == "data owner"


def test_a_revoked_person_is_signed_out_and_stays_out(
    browser: httpx.Client, provider: SignInService, admin: rows.Key, with_provider: Services
) -> None:
    finish(browser, provider.approve(begin(browser)))
    with with_provider.database.read() as session:
        caller = session.scalars(sa.select(SignIn.key_id)).one()
    assert browser.delete(f"/v1/api-keys/{caller}", headers=admin.headers).status_code == 204
    assert find_role(browser) is None
    assert finish(browser, provider.approve(begin(browser))).status_code == 401


FAULTY: dict[str, dict[str, Any]] = {
    "another issuer": {"issuer": "https://elsewhere.example"},
    "in the clear": {"token_endpoint": "http://127.0.0.1/token"},
    "no endpoint": {"authorization_endpoint": None},
    "a fragment": {"authorization_endpoint": "https://127.0.0.1/a#b"},
}


@pytest.mark.parametrize("name", FAULTY)
def test_a_provider_with_a_wrong_document_is_not_used(
    browser: httpx.Client, provider: SignInService, name: str
) -> None:
    endpoints = {f"{each}_endpoint": f"{provider.issuer}/{each}" for each in ("authorization", "token")}
    provider.answer("/.well-known/openid-configuration", {"issuer": provider.issuer} | endpoints | FAULTY[name])
    answer = browser.get(BEGIN)
    assert (answer.status_code, code_of(answer)) == (503, "dependency_unavailable")


@pytest.mark.parametrize(
    ("status", "document"),
    [(500, {}), (401, {}), (200, []), (200, {"id_token": None}), (302, {}), (200, {"id_token": 7})],
)
def test_a_token_endpoint_that_fails_is_a_503(
    browser: httpx.Client, provider: SignInService, status: int, document: Any
) -> None:
    address = begin(browser)
    provider.answer("/token", document, status, Location=f"{provider.issuer}/elsewhere")
    answer = finish(browser, provider.approve(address))
    assert (answer.status_code, code_of(answer)) == (503, "dependency_unavailable")
    assert "/elsewhere" not in provider.asked
    assert find_role(browser) is None


def test_the_button_is_there_only_with_a_provider(
    browser: httpx.Client, application: FastAPI, provider: SignInService
) -> None:
    page = browser.get("/dashboard/sign-in", params={"next": "/dashboard/jobs"}).text
    assert find_faults(page) == []
    assert "Sign in at 127.0.0.1" in page
    assert f'{BEGIN}?next=%2Fdashboard%2Fjobs"' in page
    with open_browser(application) as plain:
        assert "provider" not in plain.get("/dashboard/sign-in").text
        for path in (BEGIN, CALLBACK):
            answer = plain.get(path)
            assert (answer.status_code, code_of(answer)) == (404, "not_found")


def test_sign_ins_are_in_the_audit_log_and_no_secret_is_logged(
    browser: httpx.Client, provider: SignInService, auditor: rows.Key, capsys: pytest.CaptureFixture[str]
) -> None:
    """W3: neither code, state, token nor subject occurs in logs, audit log or pages."""
    address = begin(browser)
    query = provider.approve(address, email="canary@example.test")
    shown = finish(browser, query).text
    answer = browser.get("/v1/audit-log", headers=auditor.headers)
    made = [(each["action"], each["status"]) for each in answer.json()["items"]]
    assert (f"GET {CALLBACK}", 200) in made
    written = capsys.readouterr()
    words = ("canary", query["code"], query["state"], provider.redeemed[0][0]["code_verifier"])
    assert not [word for word in words if word in written.out + written.err + answer.text + shown]


def test_incomplete_settings_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CorevaultError, match="COREVAULT_OIDC_ISSUER"):
        _build_sign_in(Settings(data_dir=tmp_path, oidc_client_id="dashboard"))
    settings = Settings(data_dir=tmp_path, oidc_issuer="https://sign-in.example", oidc_audience="a")
    assert _build_sign_in(settings)[1] is None
    assert _build_sign_in(settings.model_copy(update={"oidc_client_id": "dashboard"}))[1] is not None
    with pytest.raises(ValueError, match="openid"):
        Settings(data_dir=tmp_path, oidc_scope="profile")
    assert "secret-7461" not in repr(Settings(data_dir=tmp_path, oidc_client_secret="secret-7461"))


@pytest.mark.process
@pytest.mark.browser
def test_a_real_browser_comes_back_signed_in(chromium: Chromium, address: str, provider: SignInService) -> None:
    """Browsers send strict cookies only after the page that leads on by itself."""
    page = Page(chromium)
    page.call("Security.setIgnoreCertificateErrors", ignore=True)
    page.open(f"{address}/dashboard/sign-in?next=/dashboard/jobs")
    check_appearance(page)
    page.run("document.querySelector('main a.button').click()")
    page.wait("location.pathname === '/dashboard/jobs' && document.readyState === 'complete'")
    assert page.run("document.querySelector('.who .role').textContent") == "data owner"
    assert page.run("document.cookie") == ""
    page.run("document.querySelector('.who').requestSubmit()")
    page.wait("location.pathname === '/dashboard/sign-in'")
    assert page.faults() == []
