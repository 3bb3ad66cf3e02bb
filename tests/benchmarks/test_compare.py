"""Two engines on the same tables: pairs, ratios and the page."""

import math
from dataclasses import replace

import pytest

from benchmarks.compare_page import Pair, compute_mean_ratio, list_worst, make_pairs, render_page
from benchmarks.outcomes import Outcome

OLD = Outcome(
    engine="old", seed=9, table=1, group="well-behaved", kind="logistic", design="normal", what="500 x 2 normal",
    family="logistic-regression", slots=500, parameters=3, epsilon=0.2, release_seed=1, kl=2.0, floor=2.0,
    noise_kl=2.0, trusted=True, grade="calibrated",
)  # fmt: skip


def pair(ratio: float, table: int = 1, epsilon: float = 0.2) -> Pair:
    old = replace(OLD, table=table, epsilon=epsilon)
    return Pair(old, replace(old, engine="new", kl=2.0 * ratio))


def test_outcomes_are_paired_by_table_and_epsilon() -> None:
    pairs = [pair(2.0), pair(3.0, epsilon=1.0), pair(4.0, table=2)]
    outcomes = [each for one in reversed(pairs) for each in reversed(one)]
    alone = replace(OLD, table=7)
    assert make_pairs([alone, *outcomes], ("old", "new")) == pairs


def test_the_epsilons_of_a_table_count_as_one() -> None:
    """Two tables with means 4 and 1."""
    mean, error = compute_mean_ratio([pair(2.0), pair(1.0, table=2), pair(8.0, epsilon=1.0)])
    assert mean == pytest.approx(2)
    assert error == pytest.approx(2)


def test_ratios_of_one_table_have_no_error() -> None:
    mean, error = compute_mean_ratio([pair(3.0)])
    assert mean == pytest.approx(3)
    assert math.isnan(error)


def test_values_that_are_not_finite_are_in_no_ratio() -> None:
    pairs = [pair(2.0), pair(math.nan, table=2), pair(math.inf, table=3)]
    assert compute_mean_ratio(pairs)[0] == pytest.approx(2)
    assert list_worst(pairs) == pairs[:1]
    assert "| logistic | 3 | 2.00 | 2.00 | 0, 2 | 3, 3 | 0, 2 |" in render_page(
        [each for one in pairs for each in one], ("old", "new"), "compare.csv", 9, {}
    )


def test_a_tiny_kl_counts_as_a_hundredth_of_a_nat() -> None:
    assert pair(1e-9).log_ratio == pytest.approx(math.log(0.01 / 2))
    tiny = replace(OLD, kl=-1e-12)
    assert Pair(tiny, replace(tiny, kl=1e-5)).log_ratio == 0


def test_the_page_has_a_line_for_each_kind_and_the_worst_pairs() -> None:
    pairs = [pair(1.0 + number, number) for number in range(12)]
    text = render_page([each for one in pairs for each in one], ("old", "new"), "compare.csv", 9, {"commit": "abc"})
    assert text.startswith("# new compared with old")
    assert "| 11 | logistic | 0.2 | 2.00 | 24.0 | 12.0 | 500 x 2 normal |" in text
    assert len([line for line in text.splitlines() if "500 x 2" in line]) == 10
    assert "| **well-behaved** | 12 |" in text
