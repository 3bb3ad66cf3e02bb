"""The page about robust methods: its tables and its reader."""

from pathlib import Path

import numpy as np

from benchmarks.designs import Rows
from benchmarks.figures import write_lines
from benchmarks.robust import DEFAULT, read_lines, render_page, render_targets
from benchmarks.robust_runs import FULL, Line, draw_normal_rows, spoil


def test_page_has_a_row_for_each_setting_and_survives_storage(tmp_path: Path) -> None:
    lines = [
        Line("public", "beta-cores", 16.0, 0.01, 0.15, seed, kl=2.0 + seed, chosen=0.0, rows=9, grade="g", seconds=1.0)
        for seed in (0, 1, 2)
    ]
    lines.append(Line("private", FULL, 24.0, 0.0, 0.2, 0, accuracy=0.8))
    lines.append(Line("private", "dp-psvi", 2.0, 0.5, 0.2, 0, accuracy=0.83, grade="centre-only", seconds=3.0))
    write_lines(tmp_path / "robust.csv", lines)
    text = render_page(read_lines(tmp_path / "robust.csv"), {"commit": "abc"})
    assert "| 15% | `beta-cores` | 0.01 | 3 | 0% | 9 | 3 | 1 |" in text
    assert "| 20% | full posterior | ±24 | 0 | 0.8000 | – | 1 | – |" in text
    assert "| 20% | `dp-psvi` | ±2 | 0.5 | 0.8300 | centre-only | 1 | 3 |" in text


def test_targets_are_compared_with_medians() -> None:
    public = [
        Line("public", method, 16.0, beta, share, 0, kl=kl)
        for method, beta, share, kl in (
            ("sparse-vi", 0.0, 0.0, 0.1),
            ("sparse-vi", 0.0, 0.3, 6e4),
            ("beta-cores", 0.01, 0.0, 4.0),
            ("beta-cores", 0.01, 0.3, 2.0),
        )
    ]
    private = [
        Line("private", DEFAULT, 2.0, beta, share, 0, accuracy=accuracy)
        for beta, share, accuracy in ((0.0, 0.0, 0.837), (0.5, 0.0, 0.836), (0.0, 0.2, 0.81), (0.5, 0.2, 0.829))
    ]
    text = " ".join(render_targets([*public, *private]).split())
    assert (
        "The largest median is 4. With outliers, SparseVI should have 10,000 times this; it has at least 30,000" in text
    )
    assert "is 0.8290, with bounds ±2 and β = 0.5." in text
    assert "the most that it costs is 0.0010." in text
    assert render_targets([]) == ""


def test_spoiled_rows_are_as_many_as_stated() -> None:
    x = np.zeros((1000, 10))
    rows = spoil(Rows(x, np.zeros(1000)), 0.2, 0)
    assert int((rows.x != 0).any(axis=1).sum()) == 200
    assert set((rows.x != 0).sum(axis=1)) == {0, 5}
    assert int(rows.y.sum()) == 200
    assert draw_normal_rows(0.3, 0)[1] == 1500
