"""The page about a coreset of a stream."""

import numpy as np
import pytest

from benchmarks.scmc import FULL, list_memories, make_cases, measure, render_page, summarise


@pytest.mark.slow
def test_the_page_compares_every_memory_with_all_rows() -> None:
    runs = [run for case in make_cases(0, 120) for run in measure(case, 0, (20, 100), particles=60)]
    assert len(runs) == 3 * len(list(list_memories((20, 100))))
    text = render_page(runs, (1.5, 2.5), {"commit": "abc"})
    assert text.count("| reservoir |") == text.count("| coreset |") == 6
    assert text.count(f"| {FULL} | 120 |") == 3
    assert "takes 1.5 ms" in text
    assert all(np.isfinite([run.kl, run.points_kl]).all() and run.evaluations > 0 for run in runs)


@pytest.mark.long
def test_medians_are_over_seeds_of_one_memory_and_size() -> None:
    cases = [(seed, next(make_cases(seed, 60))) for seed in (0, 1, 2)]
    runs = [run for seed, case in cases for run in measure(case, seed, (10,), particles=60)]
    full = summarise(runs)[0]
    assert (full.memory, full.size) == (FULL, 60)
    assert full.kl == sorted(run.kl for run in runs if run.memory == FULL)[1]
