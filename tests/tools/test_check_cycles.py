"""No module imports itself through others."""

from pathlib import Path

import pytest

from tools import check_cycles
from tools.check_cycles import main


def _write(root: Path, **sources: str) -> None:
    for name, source in sources.items():
        file = root / "app" / Path(*name.split("__")).with_suffix(".py")
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.py").touch()
        file.write_text(source)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(check_cycles, "ROOT", tmp_path)
    return tmp_path


def test_a_cycle_is_reported_in_order(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(root, one="import app.two", two="from app import three", three="from app.one import x")
    assert main() == 1
    cycle = capsys.readouterr().out.strip().partition(": ")[2].split(" > ")
    start = cycle.index("app.one")
    assert [*cycle[start:-1], *cycle[: start + 1]] == ["app.one", "app.two", "app.three", "app.one"]


def test_a_cycle_through_a_package_is_reported(root: Path) -> None:
    """Importing ``app.part.inner`` imports ``app.part`` first."""
    _write(root, user="from app.part.inner import x", part__inner="x = 1", part__other="import app.user")
    assert main() == 0
    (root / "app" / "part" / "__init__.py").write_text("from app.part.other import y")
    assert main() == 1


@pytest.mark.parametrize(
    "late",
    [
        "def f():\n    import app.one",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import app.one",
        "import app.nothing",
    ],
)
def test_late_imports_make_no_cycle(root: Path, late: str) -> None:
    _write(root, one="import app.two", two=late)
    assert main() == 0
