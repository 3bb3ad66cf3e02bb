"""A service whose callers may sign in at a provider on loopback."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from app.db import BackgroundWriter
from app.main import create_app
from app.services import Services
from tests.auth.provider import SignInService, make_verifier, sign_in_service
from tests.factories.transport import AppTransport


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SignInService]:
    with sign_in_service(tmp_path) as running:
        yield running


@pytest.fixture
def signed_in(services: Services, service: SignInService) -> Iterator[Services]:
    background = BackgroundWriter(services.database)
    yield replace(services, tokens=make_verifier(service), background=background)
    background.close()


@pytest.fixture
def calls(signed_in: Services) -> Iterator[httpx.Client]:
    with httpx.Client(transport=AppTransport(create_app(signed_in)), base_url="http://corevault.test") as client:
        yield client
