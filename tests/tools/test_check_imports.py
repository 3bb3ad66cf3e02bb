"""Benchmarks, tests and the service do not import each other."""

from pathlib import Path

import pytest

from tools import check_imports
from tools.check_imports import find_breaches, main


@pytest.mark.parametrize(
    ("path", "source", "package"),
    [
        ("benchmarks/speed.py", "from tests.factories import rows", "tests"),
        ("tests/ledger/test_views.py", "import benchmarks.cases as cases", "benchmarks"),
        ("tests/factories/rows.py", "def f():\n    from benchmarks import cases", "benchmarks"),
        ("support/vault.py", "from benchmarks.cases import logistic", "benchmarks"),
        ("support/vault.py", "import tests", "tests"),
        ("app/main.py", "from support import servers", "support"),
        ("client/src/corevault/client.py", "from tests import factories", "tests"),
    ],
)
def test_forbidden_import_is_reported(path: str, source: str, package: str) -> None:
    assert [name for _, name in find_breaches(path, source)] == [package]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("benchmarks/speed.py", "from support.servers import Postgres"),
        ("tests/benchmarks/test_floors.py", "from benchmarks import floors"),
        ("tests/ledger/test_views.py", "from tests.ledger import support"),
        ("app/main.py", "from app.supported import x"),
    ],
)
def test_other_imports_are_allowed(path: str, source: str) -> None:
    assert list(find_breaches(path, source)) == []


def test_tree_with_a_breach_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "new.py").write_text("\nimport tests.conftest\n")
    monkeypatch.setattr(check_imports, "ROOT", tmp_path)
    assert main() == 1
    assert capsys.readouterr().out == "benchmarks/new.py:2: benchmarks imports tests\n"
