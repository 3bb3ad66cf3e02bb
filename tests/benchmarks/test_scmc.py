"""The page about a coreset of a stream."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scmc import (
    FULL,
    Stream,
    list_memories,
    make_normal_stream,
    make_streams,
    measure,
    render_page,
    summarise,
)


def make_small(seed: int, rows: int) -> list[Stream]:
    return [replace(stream, particles=100) for stream in make_streams(seed, rows)]


@pytest.mark.slow
def test_the_page_compares_every_memory_with_all_rows() -> None:
    runs = [run for stream in make_small(0, 120) for run in measure(stream, 0, (20, 100))]
    assert len(runs) == 3 * len(list(list_memories((20, 100))))
    text = render_page(runs, (1.5, 2.5), {"commit": "abc"})
    assert text.count("| reservoir |") == text.count("| coreset |") == 6
    assert text.count(f"| {FULL} | 120 |") == 3
    assert "takes 1.5 ms" in text
    assert all(np.isfinite([run.kl, run.points_kl]).all() and run.evaluations > 0 for run in runs)


@pytest.mark.long
def test_medians_are_over_seeds_of_one_memory_and_size() -> None:
    streams = [(seed, replace(next(make_streams(seed, 60)), particles=60)) for seed in (0, 1, 2)]
    runs = [run for seed, stream in streams for run in measure(stream, seed, (10,))]
    full = summarise(runs)[0]
    assert (full.memory, full.size) == (FULL, 60)
    assert full.kl == sorted(run.kl for run in runs if run.memory == FULL)[1]


@pytest.mark.slow
def test_the_coreset_of_a_normal_distribution_has_its_statistics() -> None:
    """Sixty rows can have all 28 statistics of 200 rows, and ten cannot."""
    stream = replace(make_normal_stream(np.random.default_rng(3), 200), particles=300)
    divergences = {(run.memory, run.size): run.points_kl for run in measure(stream, 3, (10, 60))}
    assert divergences["coreset", 60] < 1e-3
    assert divergences["coreset", 10] > 0.1
    assert divergences["coreset", 60] < 1e-2 * divergences["reservoir", 60]
    assert divergences["all rows", 200] < 1e-9
