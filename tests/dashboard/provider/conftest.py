"""A provider, the pages with it, and a browser."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from app.main import create_app
from app.oidc import Documents, Provider, ProviderKeys, TokenVerifier
from app.services import Services
from tests.auth.provider import AUDIENCE, SignInService, sign_in_service
from tests.dashboard.browser import open_browser
from tests.dashboard.provider.steps import ROLES, make_flow


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[SignInService]:
    with sign_in_service(tmp_path) as running:
        yield running


@pytest.fixture
def with_provider(services: Services, provider: SignInService) -> Services:
    keys = ProviderKeys(Documents(provider.authority), provider.issuer)
    tokens = TokenVerifier(Provider(provider.issuer, AUDIENCE, "roles", ROLES), keys)
    return replace(services, tokens=tokens, code_flow=make_flow(provider))


@pytest.fixture
def pages(with_provider: Services) -> FastAPI:
    return create_app(with_provider)


@pytest.fixture
def browser(pages: FastAPI) -> Iterator[httpx.Client]:
    with open_browser(pages) as browser:
        yield browser
