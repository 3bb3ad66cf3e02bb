"""Fixtures: a store in a temporary folder, and a key pair."""

from pathlib import Path

import pytest
from nacl.public import PrivateKey

from app.vault.local_store import LocalStore


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture(scope="session")
def opening_secret() -> bytes:
    return bytes(PrivateKey.generate())


@pytest.fixture(scope="session")
def sealing_key(opening_secret: bytes) -> bytes:
    return bytes(PrivateKey(opening_secret).public_key)
