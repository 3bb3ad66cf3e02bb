"""Processes load large libraries late: an API for its first price, and a command after its arguments are parsed."""

import gc
import subprocess
import sys
from collections.abc import Sequence

import pytest

from app.collector import pause_collection

LARGE = ("dp_accounting", "opendp.prelude", "pyarrow", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats")
FRAMEWORKS = ("celery", "fastapi", "pydantic", "sqlalchemy")


def loaded(module: str, libraries: Sequence[str]) -> set[str]:
    code = f"import sys, {module}; print(*(name for name in {libraries!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(("module", "expected"), [("app.cli.serving", set()), ("workers.celery_app", set(LARGE))])
@pytest.mark.long
def test_api_loads_large_libraries_late_and_a_worker_early(module: str, expected: set[str]) -> None:
    assert loaded(module, LARGE) == expected


@pytest.mark.slow
@pytest.mark.parametrize("module", ["app.cli", "workers.main"])
def test_command_line_is_parsed_before_libraries_are_loaded(module: str) -> None:
    assert loaded(module, (*LARGE, *FRAMEWORKS)) == set()


@pytest.mark.slow
def test_rewrap_command_loads_neither_celery_nor_the_methods() -> None:
    assert loaded("workers.commands", ("celery", "dp_accounting", "scipy.linalg")) == set()


@pytest.mark.slow
def test_worker_loads_no_web_framework() -> None:
    assert loaded("workers.celery_worker", ("fastapi", "starlette")) == set()


def test_collector_is_off_only_while_modules_are_loaded() -> None:
    with pause_collection():
        assert not gc.isenabled()
    assert gc.isenabled()
