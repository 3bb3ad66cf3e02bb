"""Tables with outliers and wrong rows, and the study of points."""

from pathlib import Path

import numpy as np

from benchmarks.experiments import outliers, robust_logistic
from benchmarks.figures import read_lines, write_lines
from benchmarks.measures import compute_prediction
from benchmarks.records import REFERENCE
from benchmarks.robust_groups import render_attributes, render_groups
from benchmarks.robust_runs import BOUND, Line
from benchmarks.runs import Job


def test_the_posterior_without_outliers_has_its_closed_form() -> None:
    x, count = outliers.draw_rows(0.3, 1)
    case = outliers.make_table(0.3, 1)
    assert count == 1500
    assert x[:count].mean() > 9.9
    assert case.exact is not None
    right = x[count:]
    np.testing.assert_allclose(case.exact.mean * BOUND, right.sum(axis=0) / (len(right) + 1), rtol=1e-6)
    covariance = np.linalg.inv(case.exact.factor @ case.exact.factor.T) * BOUND**2
    np.testing.assert_allclose(covariance, np.eye(outliers.COLUMNS) / (len(right) + 1), rtol=1e-6, atol=1e-12)


def test_points_are_counted_and_drawn(tmp_path: Path) -> None:
    lines = [
        outliers.Line(0.15, "", 0, kind, x, x, spread, int(x > 5), 0.0)
        for kind, x, spread in ((outliers.ROW, 1.0, 0.0), (outliers.OUTLIER, 10.0, 0.0), (outliers.CLEAN, 1.0, 1.0))
    ]
    for label, at in ((outliers.BETA_CORES, 1.0), (outliers.SPARSE_VI, 10.0)):
        lines.append(outliers.Line(0.15, label, 10, outliers.POINT, at, at, 2.0, int(at > 5), float("nan")))
        lines.append(outliers.Line(0.15, label, 10, outliers.ELLIPSE, at, at, 1.0, 0, 3.0))
    write_lines(tmp_path / "points.csv", lines, outliers.Line)
    outliers.draw(tmp_path / "points.csv", tmp_path / "points.png")
    assert (tmp_path / "points.png").read_bytes().startswith(b"\x89PNG")
    table = outliers.tabulate(tmp_path / "points.csv")
    assert "| 15% outliers | β-Cores | 0 of 1 |" in table
    assert "| 15% outliers | SparseVI | 1 of 1 |" in table
    assert outliers.count_points(read_lines(tmp_path / "points.csv", outliers.Line), 0.15, "SparseVI", 10) == (1, 1)


def test_each_table_has_every_method_at_every_size() -> None:
    work = list(outliers.plan_work(quick=True))
    assert [each.label for each in work if isinstance(each, Job)] == [label for *_, label in outliers.METHODS]
    few = [
        each for each in outliers.plan_work(quick=False) if isinstance(each, Job) and each.size == 20 and not each.seed
    ]
    assert len(few) == len(outliers.SHARES) * (len(outliers.METHODS) + len(outliers.BETAS))


def test_references_are_of_the_rows_before_and_after() -> None:
    case = robust_logistic.make_table(0.2, 0)
    assert case.exact is not None
    references = list(robust_logistic.list_references(case))
    assert {each.outcome for each in references} == {REFERENCE}
    accuracy = {each.method: each.accuracy for each in references}
    assert accuracy[robust_logistic.CLEAN] == compute_prediction(case, case.exact).accuracy
    assert accuracy[robust_logistic.FULL] < accuracy[robust_logistic.CLEAN]


def test_attributes_of_chosen_groups_are_counted() -> None:
    chosen = Line(
        *("groups", "beta-cores, groups", 0.0, 0.6, 0.1, 0),
        accuracy=0.8,
        chosen=0.1,
        rows=70,
        seconds=1.0,
        sets=10,
        labels="age=from 17, race=White, sex=Male; age=from 25, race=White, sex=Female",
    )
    text = render_attributes([chosen, chosen])
    assert "| race | White (4) |" in text
    assert "| sex | Male (2), Female (2) |" in text
    assert "| 10% | beta-cores, groups | 10 | 0.6 | 0.8000 | 10% | 70 | 2 | 1 |" in render_groups([chosen, chosen])
