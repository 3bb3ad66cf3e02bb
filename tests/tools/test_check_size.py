"""The check of the engine's size counts modules, lines, code and numbers."""

from pathlib import Path

import pytest

from tools import check_size

MODULE = '''"""Words.

More words.
"""

import math

# Why.
LEAST, MOST = 1.0, -2.5
NAME = "x"


class Tuning:
    """Words."""

    share: float = 1 / 3
    powers: tuple[float, ...] = (2.0, 2.6)
    on: bool = True
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "__init__.py").write_text('"""Words."""\n')
    (tmp_path / "module.py").write_text(MODULE)
    return tmp_path


def test_size_is_counted(package: Path) -> None:
    assert check_size.measure(package) == (1, 1 + MODULE.count("\n"), 7, 3)


def test_larger_engine_fails(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_size, "ENGINE", package)
    monkeypatch.setattr(check_size, "LIMITS", check_size.Size(1, 100, 7, 3))
    assert check_size.main() == 0
    monkeypatch.setattr(check_size, "LIMITS", check_size.Size(1, 100, 6, 3))
    assert check_size.main() == 1
