"""A vault in a temporary folder."""

from pathlib import Path

import pytest

from support.vault import Vault, new_vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return new_vault(tmp_path)


@pytest.fixture(scope="module")
def vault_of_module(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """One vault for tests of properties, which try many tables."""
    return new_vault(tmp_path_factory.mktemp("vault"))
