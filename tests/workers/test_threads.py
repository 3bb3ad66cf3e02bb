"""Runs share a machine: one thread each, however the worker was started."""

import os
import subprocess
import sys

import pytest

SAYS = "import workers.main, os; print(os.environ['OMP_NUM_THREADS'])"


@pytest.mark.slow
@pytest.mark.parametrize(("given", "expected"), [({}, "1"), ({"OMP_NUM_THREADS": "4"}, "4")])
def test_a_workers_runs_do_not_fight_over_the_cores(given: dict[str, str], expected: str) -> None:
    environment = {name: value for name, value in os.environ.items() if "NUM_THREADS" not in name} | given
    answer = subprocess.run([sys.executable, "-c", SAYS], env=environment, capture_output=True, check=True, text=True)
    assert answer.stdout.strip() == expected
