"""Random tables and their floors: the columns, the medians and the page."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import breadth
from benchmarks.breadth import Reached, measure_table
from benchmarks.breadth_page import render_page
from benchmarks.figures import write_lines
from benchmarks.mixtures import KINDS, draw_mixture

NEAR = Reached(3, "5,000 x 6: normal 6", 0.2, 12.0, 4.0, 11.0, 3)
FAR = replace(NEAR, table=4, kl=24.0, trusted=1)


def test_a_seed_gives_one_table_within_its_bounds() -> None:
    kinds = set()
    for seed in range(12):
        what, rows = draw_mixture(seed)
        wider = float(what.split("bounds ")[1].split(" times")[0]) if "bounds" in what else 1.0
        assert 0 < np.abs(rows.x).max() <= 1 / wider
        assert set(np.unique(rows.y)) == {0.0, 1.0}
        assert what.startswith(f"{len(rows.x):,} x {rows.x.shape[1]}: ")
        counts = what.split(": ")[1].split(";")[0].split(", ")
        assert sum(int(each.rsplit(" ", 1)[1]) for each in counts) == rows.x.shape[1]
        kinds |= {kind for kind in KINDS if kind in what}
    assert kinds == set(KINDS)
    assert np.array_equal(draw_mixture(3)[1].x, draw_mixture(3)[1].x)
    assert np.array_equal(draw_mixture(3)[1].y, draw_mixture(3)[1].y)


def test_the_page_counts_medians_within_the_target() -> None:
    """The worst table is the furthest from its target, not from its floor."""
    less = replace(FAR, epsilon=1.0, kl=28.0)
    text = render_page([NEAR, less, FAR, replace(NEAR, kl=2.0)], {"commit": "abc"})
    assert "| 0.2 | 3 | 2 | 3.0 | 5.4 | 6.0 | 1 |" in text
    assert "| 1 | 1 | 1 | 7.0 | 7.0 | 7.0 | 0 |" in text
    worst = [line for line in text.splitlines() if "5,000 x 6" in line]
    assert worst[0] == "| 4 | 5,000 x 6: normal 6 | 0.2 | 24.0 | 4.00 | 6.0 | 11.0 | 1 |"
    assert "| 1 | 28.0 |" in worst[1]
    assert len([line for line in render_page([FAR] * 40, {}).splitlines() if "5,000 x 6" in line]) == 15


@pytest.mark.long
def test_figures_are_medians_over_runs_with_different_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {0: (7.0, 1.0, True), 1: (5.0, 9.0, False), 2: (50.0, 2.0, True)}
    monkeypatch.setattr(breadth, "measure_run", lambda _case, _epsilon, _table, number: runs[number])
    small = next(seed for seed in range(50) if draw_mixture(seed)[1].x.shape == (5_000, 6))
    results = next(iter(measure_table(small, 3)))
    assert (results.kl, results.noise_kl, results.trusted) == (7.0, 2.0, 2)
    monkeypatch.undo()
    one, other = (next(iter(measure_table(small, runs))).kl for runs in (1, 2))
    assert one != other


@pytest.mark.long
def test_a_table_has_a_line_for_each_epsilon_with_a_target(tmp_path: Path) -> None:
    small = next(seed for seed in range(50) if draw_mixture(seed)[1].x.shape == (5_000, 6))
    results = list(measure_table(small, 1))
    assert [each.epsilon for each in results] == [0.05, 0.1, 0.2, 1.0]
    assert results == list(measure_table(small, 1))
    assert all(0 < each.kl < np.inf and each.floor > 0 for each in results)
    crowded = next(seed for seed in range(50) if draw_mixture(seed)[1].x.shape == (5_000, 60))
    assert [each.epsilon for each in measure_table(crowded, 0)] == []
    write_lines(tmp_path / "breadth.csv", results)
    with (tmp_path / "breadth.csv").open(newline="") as stream:
        assert [line["epsilon"] for line in csv.DictReader(stream)] == ["0.05", "0.1", "0.2", "1"]
