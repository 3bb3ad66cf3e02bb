"""A vault in a temporary folder."""

from pathlib import Path

import pytest

from support.vault import Vault, make_vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return make_vault(tmp_path)


@pytest.fixture(scope="module")
def vault_of_module(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    """One vault for tests of properties, which try many tables."""
    return make_vault(tmp_path_factory.mktemp("vault"))
