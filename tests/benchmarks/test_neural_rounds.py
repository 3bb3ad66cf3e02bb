"""Neural linear regression that is trained again after each batch: its rows, runs, page and picture."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks import neural_rounds
from benchmarks.neural_rounds import BATCH, CHOICES, HELD_OUT, START, Houses, Line, measure, render_page, spoil


def _draw_houses(count: int = 150) -> Houses:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((count, 4))
    return Houses(x, np.tanh(x[:, 0] * x[:, 1]) + 0.1 * rng.standard_normal(count))


def test_spoilt_rows_are_in_wrong_batches_only() -> None:
    houses = _draw_houses()
    rows, is_wrong = spoil(houses, 0.4, np.random.default_rng(1))
    moved = (rows.x != houses.x).any(axis=1) & (rows.y != houses.y)
    assert is_wrong.sum() == 6
    assert moved.reshape(-1, BATCH).sum(axis=1).tolist() == [7 if wrong else 0 for wrong in is_wrong]


def test_runs_start_alike_and_grow_by_batches() -> None:
    lines = list(measure(_draw_houses(), 0, shares=(0.3,), rounds=2, training=20))
    runs = defaultdict(list)
    for line in lines:
        runs[line.choice].append(line)
    assert list(runs) == list(CHOICES)
    assert len({run[0].rmse for run in runs.values()}) == 1
    for run in runs.values():
        points = [line.points for line in run]
        assert points[0] == START
        assert set(np.diff(points)) <= {0, BATCH}
    assert [line.points for line in runs[neural_rounds.RANDOM]] == [START, START + BATCH, START + 2 * BATCH]


def test_a_run_does_not_read_the_houses_that_are_held_out() -> None:
    """Choices and points are the same with other prices in held-out houses."""
    houses, order = _draw_houses(), np.random.default_rng((0, 30)).permutation(150)
    other = Houses(houses.x, houses.y.copy())
    other.y[order[:HELD_OUT]] += 9
    before, after = (list(measure(each, 0, shares=(0.3,), rounds=2, training=20)) for each in (houses, other))
    assert [line.points for line in before] == [line.points for line in after]
    assert [line.wrong_batches for line in before] == [line.wrong_batches for line in after]
    assert all(one.rmse != two.rmse for one, two in zip(before, after, strict=True))


@pytest.fixture(name="lines")
def make_lines() -> list[Line]:
    """Lines of two runs of every choice."""
    return [
        Line(share, choice, seed, rounds, START + BATCH * rounds, rounds, 1.0 / (1 + rounds + seed), 1.0)
        for share in (0.0, 0.3)
        for choice in CHOICES
        for seed in (0, 2)
        for rounds in (0, 1, 2)
    ]


def test_the_page_has_medians_for_each_share(lines: list[Line]) -> None:
    text = render_page(lines, {"commit": "abc"})
    assert "## 30% wrong batches\n\n| rows by |" in text
    assert "| SparseVI | 0.667 | 0.375 | 0.267 | 40 | 2.0 |" in text
    assert "Medians over 2 runs." in " ".join(text.split())


def test_the_picture_is_drawn(lines: list[Line], tmp_path: Path) -> None:
    neural_rounds.draw(lines, tmp_path / "rounds.png")
    assert (tmp_path / "rounds.png").stat().st_size > 10_000
