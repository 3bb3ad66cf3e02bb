"""The steps of a sign-in at the provider, as a browser takes them."""

from typing import Final

import httpx
import sqlalchemy as sa

from app.auth.models import SignIn
from app.oidc import Client, CodeFlow, Documents, Provider, ProviderKeys, TokenVerifier
from app.services import Services
from tests.auth.provider import SignInService

CLIENT: Final = "dashboard"
BEGIN: Final = "/dashboard/sign-in/provider"
CALLBACK: Final = "/dashboard/sign-in/callback"
ROLES: Final = {"owner": "owner", "analyst": "analyst", "admin": "admin"}


def make_flow(provider: SignInService, secret: str | None = None) -> CodeFlow:
    documents = Documents(provider.authority)
    keys = ProviderKeys(documents, provider.issuer)
    tokens = TokenVerifier(Provider(provider.issuer, CLIENT, "roles", ROLES), keys)
    return CodeFlow(documents, provider.issuer, Client(CLIENT, secret, "openid roles"), tokens)


def begin(browser: httpx.Client, wanted: str = "/dashboard") -> str:
    """Begin an attempt, and return the address at the provider."""
    answer = browser.get(BEGIN, params={"next": wanted})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def finish(browser: httpx.Client, query: dict[str, str]) -> httpx.Response:
    return browser.get(CALLBACK, params=query, headers={"Sec-Fetch-Site": "cross-site"})


def find_role(browser: httpx.Client) -> str | None:
    """Return the role of the visitor; None without a session."""
    page = browser.get("/dashboard")
    return page.text.partition('<span class="role">')[2].partition("<")[0] if page.status_code == 200 else None


def count_sessions(services: Services) -> int:
    with services.database.read() as session:
        return session.scalar(sa.select(sa.func.count()).select_from(SignIn)) or 0
