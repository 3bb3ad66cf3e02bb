"""A vault in a temporary folder."""

from pathlib import Path

import pytest

from support.vault import Vault, new_vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return new_vault(tmp_path)
