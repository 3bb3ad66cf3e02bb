"""Pages about groups and networks: their tables, and the simulated outliers."""

import math
from pathlib import Path

import numpy as np

from benchmarks import groups, neural, robust
from benchmarks.designs import Rows
from benchmarks.figures import read_lines, write_lines
from benchmarks.group_tables import BOUND, spoil
from benchmarks.robust_runs import Line


def test_page_of_groups_has_medians_and_survives_storage(tmp_path: Path) -> None:
    lines = [
        groups.Line("weights", 0.3, groups.PRIVATE, 5, seed, accuracy=0.8 + seed / 100, outliers=0.1)
        for seed in (0, 1, 2)
    ]
    lines.append(groups.Line("weights", math.nan, groups.FULL, 80, 0, accuracy=0.83, outliers=0.1))
    lines.append(groups.Line("agreement", 1.0, groups.PRIVATE, 8, 0, least=100, above=0.5, wrong=1.0))
    write_lines(tmp_path / "groups.csv", lines)
    text = groups.render_page(read_lines(tmp_path / "groups.csv", groups.Line), {"commit": "abc"})
    assert "| 0.3 | dp-groups | 5 | 0.8100 | 10% | 3 |" in text
    assert "| – | all rows | 80 | 0.8300 | 10% | 1 |" in text
    assert "| 1 | 100 to 499 | 50% | 100% | – | 1 |" in text


def test_page_of_robust_methods_has_sets_of_rows() -> None:
    lines = [Line("groups", "beta-cores, groups", 0, 0.6, 0, 0, accuracy=0.8, rows=1234, seconds=1.0, sets=5)]
    text = robust.render_page(lines, {"commit": "abc"})
    assert "| beta-cores, groups | 5 | 0.6 | 0.8000 | – | 1,234 | 1 | 1 |" in text


def test_page_of_networks_has_errors_of_every_choice(tmp_path: Path) -> None:
    lines = [neural.Line(0.15, "network", "SparseVI", 100, seed, 1.0 + seed, 2.0) for seed in (0, 1, 2)]
    lines.append(neural.Line(0.15, "network", "β-Cores, batches", 100, 0, 9.0, 2.0))
    write_lines(tmp_path / "neural.csv", lines)
    text = neural.render_page(read_lines(tmp_path / "neural.csv", neural.Line), {"commit": "abc"})
    assert "with 15% wrong batches, the least error is 2.00 (SparseVI), and that of whole batches 9.00." in " ".join(
        text.split()
    )
    assert "| 15% | network | SparseVI | 100 | 2.00 | 3 | 2 |" in text


def test_spoilt_batches_have_seven_wrong_rows_of_ten() -> None:
    rng = np.random.default_rng(0)
    rows = neural.draw_rows(rng, neural.ROWS)
    wrong = neural.spoil(rows, 0.1, rng)["y"] != rows["y"]
    assert int(wrong.sum()) == 7 * 20
    assert set(wrong.reshape(-1, 10).sum(axis=1)) == {0, 7}


def test_outliers_are_a_share_of_the_rows_of_their_group() -> None:
    """Of 10,000 rows with a chance of 0.2; six standard deviations are 0.024."""
    share = np.repeat([0.0, 0.2], 10_000)
    rows, is_outlier = spoil(Rows(np.zeros((20_000, 10)), np.zeros(20_000)), share, np.random.default_rng(0))
    assert not np.any(is_outlier[:10_000])
    assert abs(is_outlier[10_000:].mean() - 0.2) < 0.024
    np.testing.assert_array_equal(rows.y, is_outlier)
    assert set((rows.x[is_outlier] != 0).sum(axis=1)) == {5}
    assert np.abs(rows.x).max() <= BOUND
