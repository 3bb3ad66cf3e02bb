"""An API process loads large libraries only for its first price, to stay small."""

import subprocess
import sys

import pytest

LARGE = ("dp_accounting", "opendp.prelude", "pyarrow", "scipy.linalg", "scipy.optimize", "scipy.special", "scipy.stats")


def loaded(module: str) -> set[str]:
    code = f"import sys, {module}; print(*(name for name in {LARGE!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(("module", "expected"), [("app.main", set()), ("workers.celery_app", set(LARGE))])
def test_api_loads_large_libraries_late_and_a_worker_early(module: str, expected: set[str]) -> None:
    assert loaded(module) == expected
