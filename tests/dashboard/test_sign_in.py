"""Signing in and out: the cookie, the session behind it, and its end."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.auth import sign_ins
from app.auth.models import ApiKey, SignIn
from app.auth.service import Keys
from app.db import now
from app.http.middleware.addresses import TrustedProxies
from app.http.rate_limits.rate_windows import Rate, open_windows
from app.http.rate_limits.rates import RateLimits
from app.main import create_app
from app.services import Services
from tests.dashboard.browser import SAME_ORIGIN, code_of, open_browser, sign_in
from tests.dashboard.conftest import Visit
from tests.dashboard.html_checks import find_faults
from tests.factories import rows
from tests.factories.worker import House

SIGN_IN = "/dashboard/sign-in"
EMPTY = {"": ""}


def _is_signed_in(browser: httpx.Client) -> bool:
    answer = browser.get("/dashboard")
    assert answer.status_code in {200, 303}, answer.text
    return answer.status_code == 200


def test_a_valid_key_opens_the_wanted_page(application: FastAPI, owner: rows.Key) -> None:
    with open_browser(application) as browser:
        answer = sign_in(browser, owner.secret, wanted="/dashboard/releases")
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/releases")
        assert _is_signed_in(browser)


@pytest.mark.parametrize(
    "wanted",
    ["https://elsewhere.test/", "//elsewhere.test", "/dashboard//x", "/v1/me", "/dashboard\\x", "/dashboardx", ""],
)
def test_a_sign_in_leads_to_no_other_site(application: FastAPI, owner: rows.Key, wanted: str) -> None:
    with open_browser(application) as browser:
        assert sign_in(browser, owner.secret, wanted=wanted).headers["location"] == "/dashboard"


def test_the_cookie_over_http_is_http_only_and_strict(application: FastAPI, owner: rows.Key) -> None:
    with open_browser(application) as browser:
        cookie = sign_in(browser, owner.secret).headers["set-cookie"]
    name, *attributes = cookie.split("; ")
    assert name.startswith("corevault-session=ses_")
    assert {each.lower() for each in attributes} == {"httponly", "path=/", "samesite=strict"}


@pytest.mark.parametrize("behind_tls", [False, True])
def test_the_cookie_over_https_is_secure_and_host_only(services: Services, owner: rows.Key, behind_tls: bool) -> None:
    application = create_app(replace(services, behind_tls=behind_tls))
    address = "http://corevault.test" if behind_tls else "https://corevault.test"
    with open_browser(application, address=address) as browser:
        cookie = sign_in(browser, owner.secret).headers["set-cookie"]
    name, *attributes = cookie.split("; ")
    assert name.startswith("__Host-corevault-session=ses_")
    assert {each.lower() for each in attributes} == {"httponly", "path=/", "samesite=strict", "secure"}


def test_a_wrong_key_is_refused_with_the_form_again(application: FastAPI, owner: rows.Key) -> None:
    with open_browser(application) as browser:
        answer = sign_in(browser, owner.secret[:-1] + "!", wanted="/dashboard/releases")
        assert answer.status_code == 401
        assert "There is a problem" in answer.text
        assert 'value="/dashboard/releases"' in answer.text
        assert owner.secret[:-1] not in answer.text
        assert "set-cookie" not in answer.headers


def test_keys_and_tokens_are_stored_as_hashes_only(application: FastAPI, services: Services, owner: rows.Key) -> None:
    with open_browser(application, owner) as browser:
        cookie = browser.cookies["corevault-session"]
    with services.database.read() as session:
        row = session.scalars(sa.select(SignIn)).one()
        stored = repr(vars(row))
    assert cookie.partition(".")[0] == row.id
    assert cookie.partition(".")[2] not in stored
    assert owner.secret not in stored


def test_signing_out_ends_the_session_on_the_server(application: FastAPI, owner: rows.Key) -> None:
    with open_browser(application, owner) as browser:
        cookies = dict(browser.cookies)
        answer = browser.post("/dashboard/sign-out", data=EMPTY)
        assert (answer.status_code, answer.headers["location"]) == (303, SIGN_IN)
    with open_browser(application) as thief:
        thief.cookies.update(cookies)
        assert not _is_signed_in(thief)


def _revoke(services: Services, key: rows.Key) -> None:
    with services.database.write() as tx:
        Keys(services.identity_key).revoke(tx, key.id)


def _rotate(services: Services, key: rows.Key) -> None:
    with services.database.write() as tx:
        Keys(services.identity_key).rotate(tx, key.id)


def _alter_key(services: Services, key: rows.Key) -> None:
    with services.database.write() as tx:
        tx.execute(sa.update(ApiKey).where(ApiKey.id == key.id).values(role="admin"))


def _set(**values: Any) -> Any:
    def change(services: Services, key: rows.Key) -> None:
        with services.database.write() as tx:
            tx.execute(sa.update(SignIn).values(**values))

    return change


@pytest.mark.parametrize(
    "end",
    [
        _revoke,
        _rotate,
        _alter_key,
        _set(expires_at=now() - timedelta(seconds=1)),
        _set(expires_at=now() + timedelta(days=365)),
        _set(last_used_at=now() - sign_ins.IDLE),
        _set(token_hash="0" * 64),
    ],
    ids=["revoked", "rotated", "altered-key", "expired", "prolonged", "idle", "other-token"],
)
def test_a_session_ends_with_its_key_and_its_time(
    application: FastAPI, services: Services, owner: rows.Key, end: Any
) -> None:
    with open_browser(application, owner) as browser:
        assert _is_signed_in(browser)
        end(services, owner)
        answer = browser.get("/dashboard")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{SIGN_IN}?next=%2Fdashboard")


def test_the_page_after_the_sign_in_keeps_its_query(application: FastAPI, owner: rows.Key) -> None:
    wanted = "/dashboard/jobs?status=failed&dataset_id=ds_1"
    with open_browser(application) as browser:
        place = browser.get(wanted).headers["location"]
        assert f'value="{wanted.replace("&", "&amp;")}"' in browser.get(place).text
        assert sign_in(browser, owner.secret, wanted=wanted).headers["location"] == wanted
    with open_browser(application) as browser:
        place = browser.get(f"/dashboard/jobs?status={'x' * 3000}").headers["location"]
        assert place == f"{SIGN_IN}?next=%2Fdashboard%2Fjobs"
        for elsewhere in ("/dashboard?x=//elsewhere.test", "//elsewhere.test/dashboard?x", "/other?/dashboard"):
            assert sign_in(browser, owner.secret, wanted=elsewhere).headers["location"] == "/dashboard"


def test_a_form_after_the_end_of_the_session_says_that_nothing_was_done(
    application: FastAPI, services: Services, owner: rows.Key
) -> None:
    with open_browser(application, owner) as browser:
        _revoke(services, owner)
        answer = browser.post("/dashboard/declare", data={"name": "census", "action": "declare"})
        assert answer.status_code == 303
        page = browser.get(answer.headers["location"]).text
    assert "Your session has ended, so nothing was done." in page
    assert find_faults(page) == []


@pytest.mark.process
@pytest.mark.browser
@pytest.mark.long
def test_back_keeps_what_was_typed_when_the_session_ends(house: House, visit: Visit, owner: rows.Key) -> None:
    page = visit(owner, "/dashboard/declare")
    typed = {"name": "census", "description": "All of them", "slots": "300", "column-0-name": "age"}
    for name, text in typed.items():
        page.run(f"document.getElementById('{name}').value = '{text}'")
    with house.database.read() as session:
        used = session.scalars(sa.select(SignIn.last_used_at)).one()
    _set(last_used_at=now() - sign_ins.IDLE)(house.services, owner)
    page.run("document.querySelector('form.declaration').requestSubmit()")
    page.wait("location.pathname === '/dashboard/sign-in' && document.readyState === 'complete'")
    assert "nothing was done" in page.run("document.querySelector('main').innerText")
    _set(last_used_at=used)(house.services, owner)
    page.go_back()
    page.wait("location.pathname === '/dashboard/declare' && document.readyState === 'complete'")
    assert {name: page.run(f"document.getElementById('{name}').value") for name in typed} == typed


def test_a_session_cannot_be_given_to_another_key(
    application: FastAPI, services: Services, analyst: rows.Key, admin: rows.Key
) -> None:
    """A writer to the database gains no rights by changing a session's key."""
    with open_browser(application, analyst) as browser:
        with services.database.write() as tx:
            tx.execute(sa.update(SignIn).values(key_id=admin.id))
        assert not _is_signed_in(browser)


def test_a_session_ends_when_its_key_expires(
    application: FastAPI, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    with services.database.write() as tx:
        key = rows.api_key(tx, "owner", expires_at=now() + timedelta(minutes=5))
    with open_browser(application, key) as browser:
        assert _is_signed_in(browser)
        monkeypatch.setattr(sign_ins, "now", lambda: now() + timedelta(minutes=6))
        assert not _is_signed_in(browser)


def test_a_key_has_a_limited_number_of_sessions(
    application: FastAPI, services: Services, owner: rows.Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_ins, "MOST", 2)
    with open_browser(application, owner) as first, open_browser(application, owner) as second:
        assert _is_signed_in(first)
        with open_browser(application, owner) as third:
            assert [_is_signed_in(each) for each in (first, second, third)] == [False, True, True]


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "http://corevault.test"},
        {"Origin": "http://elsewhere.test"},
        {"Origin": "null"},
        {},
    ],
    ids=str,
)
@pytest.mark.parametrize("path", [SIGN_IN, "/dashboard/sign-out"])
def test_forms_from_other_sites_are_refused(
    application: FastAPI, owner: rows.Key, path: str, headers: dict[str, str]
) -> None:
    with open_browser(application, owner) as browser:
        del browser.headers["Sec-Fetch-Site"]
        answer = browser.post(path, data={"key": owner.secret}, headers=headers)
        assert (answer.status_code, code_of(answer)) == (403, "forbidden")
        assert _is_signed_in(browser)


@pytest.mark.parametrize("headers", [SAME_ORIGIN, {"Sec-Fetch-Site": "none"}, {"Origin": "http://corevault.test"}])
def test_forms_from_this_server_are_accepted(application: FastAPI, owner: rows.Key, headers: dict[str, str]) -> None:
    with open_browser(application) as browser:
        del browser.headers["Sec-Fetch-Site"]
        assert browser.post(SIGN_IN, data={"key": owner.secret}, headers=headers).status_code == 303


def test_the_session_cookie_opens_no_endpoint_of_the_api(application: FastAPI, owner: rows.Key) -> None:
    with open_browser(application, owner) as browser:
        assert browser.get("/v1/me").status_code == 401


def test_a_body_that_is_no_form_is_refused(application: FastAPI) -> None:
    with open_browser(application) as browser:
        answer = browser.post(SIGN_IN, json={"key": "cv_"})
        assert (answer.status_code, code_of(answer)) == (415, "unsupported_media_type")
        answer = browser.post(SIGN_IN, data={"key": "x" * 300_000})
        assert (answer.status_code, code_of(answer)) == (413, "content_too_large")
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = browser.post(SIGN_IN, content=b"key=%ff", headers=form)
        assert (answer.status_code, code_of(answer)) == (422, "invalid_request")


@pytest.fixture
def limited(services: Services) -> Services:
    rates = RateLimits(open_windows("files"), Rate(3, 60), Rate(2, 60), TrustedProxies())
    return replace(services, rates=rates)


def test_wrong_keys_are_limited_by_address(limited: Services) -> None:
    with open_browser(create_app(limited)) as browser:
        assert [sign_in(browser, "cv_wrong").status_code for _ in range(2)] == [401, 401]
        answer = sign_in(browser, "cv_wrong")
        assert (answer.status_code, code_of(answer)) == (429, "rate_limited")
        assert int(answer.headers["retry-after"]) > 0


def test_pages_count_to_the_rate_of_the_key(limited: Services, owner: rows.Key) -> None:
    with open_browser(create_app(limited), owner) as browser:
        assert [browser.get("/dashboard").status_code for _ in range(2)] == [200, 200]
        answer = browser.get("/dashboard")
        assert (answer.status_code, code_of(answer)) == (429, "rate_limited")
        assert browser.get("/v1/me", headers=owner.headers).status_code == 429


def test_sign_ins_and_wrong_keys_are_in_the_audit_log(application: FastAPI, owner: rows.Key, auditor: rows.Key) -> None:
    with open_browser(application, owner) as browser:
        sign_in(browser, "cv_wrong")
        browser.post("/dashboard/sign-out", data=EMPTY)
        entries = browser.get("/v1/audit-log", headers=auditor.headers).json()["items"]
    made = [(entry["action"], entry["actor"], entry["status"], entry["code"]) for entry in entries]
    assert sorted(made, key=str) == sorted(
        [
            ("POST /dashboard/sign-in", owner.id, 200, None),
            ("POST /dashboard/sign-in", None, 401, "unauthenticated"),
            ("POST /dashboard/sign-out", owner.id, 200, None),
        ],
        key=str,
    )
