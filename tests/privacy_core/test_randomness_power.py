"""Laws of subsamples, and randomness of restored processes (W4, W7).

Each test fails by chance with a probability below 10**-6. Samplers that are broken on purpose are rejected.
"""

import ctypes
import os
import pickle
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.inference.core.model import Array64
from app.inference.private_zone.mechanisms import GRID, DiscreteGaussian
from app.inference.private_zone.rng import make_sampling_generator
from app.inference.private_zone.sampling import Subsamples

CHANCE = 1e-8
REJECTED = 1e-6
CLONE = {"x86_64": 56, "aarch64": 220}
"""Number of the system call that copies a process, by machine."""


def _include(rate: float, slots: int, count: int) -> Array64:
    """Draw ``count`` subsamples; return for each whether a slot is in ``(count, slots)``."""
    samples, included = Subsamples(make_sampling_generator(), slots, [(rate, count)]), np.zeros((count, slots))
    for run in range(count):
        positions = samples.next()
        assert positions is not None
        included[run, samples.union[positions]] = 1
    return included


def _find_tail(counts: Array64, trials: int, rate: float) -> float:
    """Compute the least two-sided p-value of binomial ``counts``, times their number (Bonferroni)."""
    tails = np.minimum(stats.binom.cdf(counts, trials, rate), stats.binom.sf(counts - 1, trials, rate))
    return float(np.min(tails)) * 2 * counts.size


def _find_size_error(included: Array64, rate: float) -> float:
    """Compute the two-sided p-value of the variance of subsamples' sizes.

    The variance sums over all pairs of slots."""
    count, slots = included.shape
    spread = float(np.sum((included.sum(axis=1) - rate * slots) ** 2)) / (slots * rate * (1 - rate))
    below = float(stats.chi2.cdf(spread, count))
    return 2 * min(below, 1 - below)


SAMPLERS = pytest.mark.parametrize(
    ("rate", "slots", "count"), [(0.1, 300, 2000), (0.3, 300, 1000)], ids=["gaps", "dense"]
)


@SAMPLERS
def test_w4_slots_and_pairs_are_included_at_their_rates(rate: float, slots: int, count: int) -> None:
    """W4: for both samplers, every slot, every pair of slots, and the sizes of subsamples."""
    included = _include(rate, slots, count)
    assert _find_tail(included.sum(axis=0), count, rate) > CHANCE
    pairs = (included.T @ included)[np.triu_indices(slots, 1)]
    assert _find_tail(pairs, count, rate**2) > CHANCE
    assert _find_size_error(included, rate) > CHANCE


@SAMPLERS
def test_w4_broken_samplers_are_rejected(rate: float, slots: int, count: int) -> None:
    """W4: one slot twice as often, two slots always together, and subsamples of one fixed size."""
    included, rng = _include(rate, slots, count), np.random.default_rng(1)
    often = included.copy()
    often[:, 7] = np.maximum(often[:, 7], included[:, 8])
    assert _find_tail(often.sum(axis=0), count, rate) < REJECTED
    together = included.copy()
    together[:, 7] = together[:, 8]
    assert _find_tail((together.T @ together)[np.triu_indices(slots, 1)], count, rate**2) < REJECTED
    fixed = np.zeros_like(included)
    for row in fixed:
        row[rng.choice(slots, int(rate * slots), replace=False)] = 1
    assert _find_size_error(fixed, rate) < REJECTED


def _call_in(copy: Callable[[], int], draw: Callable[[], Any]) -> Any:
    """Run ``draw`` in the process that ``copy`` makes, and return its result."""
    reader, writer = os.pipe()
    pid = copy()
    if pid == 0:
        try:
            os.write(writer, pickle.dumps(draw()))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as opened:
        answer = pickle.loads(opened.read())
    os.waitpid(pid, 0)
    return answer


def _restore(draw: Callable[[], Any]) -> Any:
    """Run ``draw`` in a copy of this process's memory, and return its result.

    The copy is made by the system call alone. No handler of a library runs that renews its state after a fork, as none
    would run if a snapshot of the process were restored. Call it in a process of one thread.
    """
    return _call_in(lambda: ctypes.CDLL(None).syscall(CLONE[platform.machine()], signal.SIGCHLD, 0, 0, 0, 0), draw)


def _run_alone(check: Callable[[], None]) -> None:
    """Run ``check`` of this module in a new interpreter, which has one thread."""
    name = check.__name__
    code = f"from tests.privacy_core.test_randomness_power import {name}; {name}()"
    root = Path(__file__).resolve().parents[2]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=os.environ | threads, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def compare_noise() -> None:
    """One source, which drew before; two copies of its memory and the process itself draw different noise."""
    source, sums = DiscreteGaussian(), np.zeros(50, dtype=np.int64)
    wide = 2.0**20 * GRID
    source.perturb(sums, wide)
    copies = [_restore(lambda: source.perturb(sums, wide).tolist()) for _ in range(2)]
    drawn = [*copies, source.perturb(sums, wide).tolist()]
    assert len({each for part in drawn for each in part}) == 150


def compare_subsamples() -> None:
    """An open generator repeats its draws after a restoration. A new one does not."""
    opened = make_sampling_generator()

    def draw_twice(make: Callable[[], np.random.Generator]) -> list[list[int]]:
        return [_restore(lambda: make().integers(0, 2**62, 20).tolist()) for _ in range(2)]

    first, second = draw_twice(lambda: opened)
    assert first == second
    fresh = draw_twice(make_sampling_generator)
    assert len({*fresh[0], *fresh[1], *first}) == 60


def test_w7_restored_snapshots_of_a_process_do_not_share_noise() -> None:
    """W7: a snapshot that is restored twice draws different noise."""
    _run_alone(compare_noise)


def test_w7_restored_snapshots_share_an_open_generator_of_subsamples() -> None:
    """A known limit: a run that was copied in its middle repeats subsamples.

    The lease and its fencing token let only one copy publish.
    """
    _run_alone(compare_subsamples)
