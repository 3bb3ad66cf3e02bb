"""A vault in a temporary folder."""

from pathlib import Path

import pytest

from support.vault import Vault, make_vault


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    return make_vault(tmp_path)
