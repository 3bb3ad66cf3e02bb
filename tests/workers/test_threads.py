"""The numerical libraries of a worker use one thread, because runs share a machine."""

import os
import subprocess
import sys

import pytest

PROGRAM = "import workers.main, os; print(os.environ['OMP_NUM_THREADS'])"


@pytest.mark.slow
@pytest.mark.parametrize(("given", "expected"), [({}, "1"), ({"OMP_NUM_THREADS": "4"}, "4")])
def test_worker_uses_one_thread_unless_configured(given: dict[str, str], expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name} | given
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True, text=True
    )
    assert answer.stdout.strip() == expected
