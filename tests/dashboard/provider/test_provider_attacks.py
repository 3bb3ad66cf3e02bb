"""Attacks on the sign-in at the OpenID Connect provider."""

from dataclasses import replace
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from fastapi import FastAPI

from app.auth.models import ApiKey
from app.http.middleware.addresses import TrustedProxies
from app.http.rate_limits.rate_windows import Rate, open_windows
from app.http.rate_limits.rates import RateLimits
from app.main import create_app
from app.services import Services
from tests.auth.provider import AUDIENCE, SignInService
from tests.dashboard.browser import open_browser
from tests.dashboard.html_checks import find_faults
from tests.dashboard.provider.steps import BEGIN, CLIENT, begin, count_sessions, find_role, finish
from tests.factories import rows


def _forge(browser: httpx.Client, provider: SignInService) -> dict[str, dict[str, str]]:
    """Make answers that an attacker could send to the browser that began an attempt."""
    good = provider.approve(begin(browser))
    return {
        "no state": {name: value for name, value in good.items() if name != "state"},
        "empty state": good | {"state": ""},
        "another state": good | {"state": good["state"][:-1] + ("b" if good["state"].endswith("a") else "a")},
        "another issuer": good | {"iss": "https://elsewhere.example"},
        "no code": {name: value for name, value in good.items() if name != "code"},
        "unknown code": good | {"code": "code-of-nobody"},
        "long code": good | {"code": "c" * 5000},
        "an error too": good | {"error": "access_denied", "error_description": "canary-7461"},
    }


FORGED = (
    *(
        "no state",
        "empty state",
        "another state",
        "another issuer",
        "no code",
        "unknown code",
        "long code",
        "an error too",
    ),
)


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_answer_makes_no_session(
    browser: httpx.Client, provider: SignInService, with_provider: Services, name: str
) -> None:
    answer = finish(browser, _forge(browser, provider)[name])
    assert answer.status_code == 401, answer.text
    assert find_faults(answer.text) == []
    assert "There is a problem" in answer.text
    assert "canary" not in answer.text
    assert find_role(browser) is None
    assert count_sessions(with_provider) == 0


TOKENS: dict[str, dict[str, Any]] = {
    "another nonce": {"nonce": "n" * 43},
    "no nonce": {"nonce": None},
    "a number as nonce": {"nonce": 7},
    "another issuer": {"iss": "https://elsewhere.example"},
    "the audience of the API": {"aud": AUDIENCE},
    "another audience": {"aud": "elsewhere"},
    "another party": {"azp": "elsewhere"},
    "several audiences without a party": {"aud": [CLIENT, "elsewhere"]},
    "expired": {"exp": 1_000_000_000},
    "no subject": {"sub": None},
}


@pytest.mark.parametrize("name", TOKENS)
def test_an_id_token_that_is_not_of_this_attempt_is_refused(
    browser: httpx.Client, provider: SignInService, with_provider: Services, name: str
) -> None:
    answer = finish(browser, provider.approve(begin(browser), **TOKENS[name]))
    assert answer.status_code == 401, answer.text
    assert find_role(browser) is None
    assert count_sessions(with_provider) == 0


@pytest.mark.parametrize("changes", [{"aud": [CLIENT, "elsewhere"], "azp": CLIENT}, {"aud": [CLIENT]}, {"azp": CLIENT}])
def test_an_id_token_for_this_party_is_accepted(
    browser: httpx.Client, provider: SignInService, changes: dict[str, Any]
) -> None:
    finish(browser, provider.approve(begin(browser), **changes))
    assert find_role(browser) == "data owner"


def test_a_code_works_once_and_only_in_its_browser(
    browser: httpx.Client, provider: SignInService, pages: FastAPI, with_provider: Services
) -> None:
    begun = browser.get(BEGIN)
    cookie = browser.cookies["corevault-attempt"]
    query = provider.approve(begun.headers["location"])
    with open_browser(pages) as other:
        assert finish(other, query).status_code == 401  # no attempt
        begin(other)
        assert finish(other, query).status_code == 401  # another attempt
    assert provider.redeemed == []
    assert finish(browser, query).status_code == 200
    assert finish(browser, query).status_code == 401  # the cookie of the attempt is gone
    browser.cookies.set("corevault-attempt", cookie)
    assert finish(browser, query).status_code == 401  # the provider refuses the code
    assert count_sessions(with_provider) == 1


def test_a_stolen_code_is_useless_in_the_attempt_of_another_browser(
    browser: httpx.Client, provider: SignInService, pages: FastAPI
) -> None:
    """PKCE binds the code to the attempt."""
    stolen = provider.approve(begin(browser))["code"]
    with open_browser(pages) as thief:
        own = provider.approve(begin(thief))
        assert finish(thief, own | {"code": stolen}).status_code == 401
        assert find_role(thief) is None


def test_an_attempt_with_another_target_or_time_is_refused(browser: httpx.Client, provider: SignInService) -> None:
    """The state covers the whole cookie."""
    query = provider.approve(begin(browser))
    secret, at, target = browser.cookies["corevault-attempt"].split(".")
    for changed in (f"{secret}.{at}.Lw", f"{secret}.{int(at) + 1}.{target}", f"{'s' * 43}.{at}.{target}", "", "a.b.c"):
        browser.cookies.set("corevault-attempt", changed, domain="corevault.test", path="/")
        assert finish(browser, query).status_code == 401
    assert provider.redeemed == []


@pytest.mark.parametrize("wanted", ["https://elsewhere.test/", "//elsewhere.test", "/dashboard//x", "/v1/me", ""])
def test_a_sign_in_leads_to_no_other_site(browser: httpx.Client, provider: SignInService, wanted: str) -> None:
    answer = finish(browser, provider.approve(begin(browser, wanted)))
    assert 'content="0; url=/dashboard"' in answer.text
    assert "elsewhere" not in answer.text


def test_a_session_that_was_planted_before_is_not_used(
    browser: httpx.Client, provider: SignInService, pages: FastAPI, analyst: rows.Key
) -> None:
    """Session fixation: each sign-in makes a new session, and the old cookie stays that of its key."""
    with open_browser(pages, analyst) as attacker:
        planted = attacker.cookies["corevault-session"]
        query_at = begin(browser)
        browser.cookies.set("corevault-session", planted, domain="corevault.test", path="/")
        answer = finish(browser, provider.approve(query_at, roles=["admin"]))
        fresh = answer.headers.get_list("set-cookie")[0].partition("=")[2].partition(";")[0]
        assert fresh != planted
        assert find_role(attacker) == "analyst"


@pytest.mark.parametrize("role", ["admin", "auditor", "data owner", "", "owner.admin"])
def test_the_role_in_the_cookie_cannot_be_changed(browser: httpx.Client, provider: SignInService, role: str) -> None:
    finish(browser, provider.approve(begin(browser), roles=["analyst"]))
    value = browser.cookies["corevault-session"]
    assert value.endswith(".analyst")
    for changed in (value.replace(".analyst", f".{role}"), value.removesuffix(".analyst")):
        browser.cookies.set("corevault-session", changed, domain="corevault.test", path="/")
        assert find_role(browser) is None


def test_a_writer_to_the_database_cannot_change_the_role(
    browser: httpx.Client, provider: SignInService, with_provider: Services
) -> None:
    finish(browser, provider.approve(begin(browser), roles=["analyst"]))
    with with_provider.database.write() as tx:
        tx.execute(sa.update(ApiKey).values(role="admin"))
    assert find_role(browser) == "analyst"


def test_the_session_of_a_key_takes_no_role(pages: FastAPI, analyst: rows.Key) -> None:
    with open_browser(pages, analyst) as browser:
        value = browser.cookies["corevault-session"]
        browser.cookies.set("corevault-session", f"{value}.admin", domain="corevault.test", path="/")
        assert find_role(browser) is None


def test_wrong_answers_are_limited_by_address(with_provider: Services) -> None:
    rates = RateLimits(open_windows("files"), Rate(99, 60), Rate(2, 60), TrustedProxies())
    with open_browser(create_app(replace(with_provider, rates=rates))) as browser:
        assert [finish(browser, {"state": "s", "code": "c"}).status_code for _ in range(3)] == [401, 401, 429]
