"""Tests are marked as ``backend`` by their fixtures; other tests may not reach a backend."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLANTED = """
import sqlite3
import pytest
from tests.factories import stack

def is_marked(request): return request.node.get_closest_marker("backend") is not None

def test_fixture(request, storage_url): assert is_marked(request) and not stack.on_services()
def test_fixture_of_fixture(request, client): assert is_marked(request)
def test_no_fixture(request): assert not is_marked(request)
@pytest.mark.sqlite
def test_own_database(): sqlite3.connect(":memory:").close()

def test_hidden_server(): stack.on_services()
def test_hidden_storage(tmp_path): stack.fresh_storage(tmp_path)
def test_hidden_database(): sqlite3.connect(":memory:").close()
"""


@pytest.mark.slow
@pytest.mark.long
def test_access_to_a_backend_without_its_marker_fails(tmp_path: Path) -> None:
    """Otherwise such a test would silently run on SQLite and files only."""
    path = tmp_path / "test_planted.py"
    path.write_text(PLANTED)
    plain = ("-p", "no:cacheprovider", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml"))
    command = [sys.executable, "-m", "pytest", *plain, "-q", str(path)]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    failed = re.findall(r"^FAILED \S*::(\w+)", printed, re.MULTILINE)
    assert failed == ["test_hidden_server", "test_hidden_storage", "test_hidden_database"], printed
    assert "3 failed, 4 passed" in printed
    assert "let it use the fixture `backend`" in printed
    assert "let it use the fixture `database`, or mark it `sqlite`" in printed
