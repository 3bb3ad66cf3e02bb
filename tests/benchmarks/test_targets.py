"""Targets of experiments: medians at each place, and the misses as a table."""

import math
from dataclasses import replace

from benchmarks.experiment import EPSILON, KL, Experiment
from benchmarks.records import REFERENCE, Record
from benchmarks.targets import list_cells, render_targets

RUN = Record("table", "method", 100, 3, 10, epsilon=0.2)
TARGET = replace(RUN, method="at most", outcome=REFERENCE, kl=5.0)
EXPERIMENT = Experiment("some", "Some", "", lambda _: iter(()), (KL,), {"": EPSILON}, target="at most")


def test_a_median_above_its_target_is_a_line() -> None:
    runs = [replace(RUN, seed=seed, kl=kl) for seed, kl in enumerate((1.0, 4.0, 900.0))]
    far = [replace(each, epsilon=1.0) for each in runs]
    records = [
        TARGET,
        replace(TARGET, epsilon=1.0, kl=3.0),
        *runs,
        *far,
        replace(RUN, outcome="failed: it", kl=math.nan),
    ]
    assert [(cell.place, cell.target, cell.holds) for cell in list_cells(EXPERIMENT, records)] == [
        ("0.2", 5.0, True), ("1", 3.0, False)
    ]  # fmt: skip
    text = render_targets(EXPERIMENT, records)
    assert text.startswith("Of 2 medians with a target, 1 are not above *at most*, by at least 3 runs each.")
    assert "| table | 1 | 3.00 | 4.00 | 2.50 to 452 | 3 |" in text
    assert "| table | 0.2 |" not in text


def test_places_without_a_target_or_runs_do_not_count() -> None:
    no_target = replace(TARGET, kl=math.nan)
    assert list(list_cells(EXPERIMENT, [no_target, replace(RUN, kl=1.0), replace(TARGET, epsilon=1.0)])) == []
    assert render_targets(EXPERIMENT, [TARGET]) == ""
    assert render_targets(replace(EXPERIMENT, target=""), [TARGET, replace(RUN, kl=9.0)]) == ""
    assert "miss" not in render_targets(EXPERIMENT, [TARGET, replace(RUN, kl=5.0)])
