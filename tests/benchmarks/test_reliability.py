"""Reliability of releases: statements, coverage, sweeps and the page."""

import argparse
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from app.inference.core.release import Pseudocoreset
from app.inference.post.laplace import Laplace
from benchmarks import outcomes, reliability_page, sweep, sweep_options
from benchmarks.cases import NoMode
from benchmarks.figures import write_lines
from benchmarks.outcomes import Engine, Outcome, derive_seed, measure_table
from benchmarks.reliability_page import render_page
from benchmarks.reliability_targets import (
    compute_interval,
    compute_ratio,
    estimate_correlation,
    is_bad,
    list_targets,
)
from benchmarks.stated import measure_coverage, read_statement
from benchmarks.sweep import Sweep, read_outcomes, run_sweep
from benchmarks.sweep_options import choose_seed, parse_engine

GOOD = Outcome(
    engine="dp-psvi-surrogate", seed=9, table=3, group="well-behaved", kind="logistic", design="normal",
    what="500 x 2 normal", family="logistic-regression", slots=500, parameters=3, epsilon=0.2, release_seed=1,
    kl=29.0, floor=2.0, prior_kl=400.0, noise_kl=2.0, trusted=True, grade="calibrated", coverage=1.0,
    noise_coverage=0.5, seconds=0.1, commit="abc",
)  # fmt: skip
BELIEF = Laplace(np.array([1.0, 2.0]), np.diag([2.0, 4.0]))
ENGINE = Engine("dp-psvi-surrogate")


def release_of(**diagnostics: Any) -> Pseudocoreset:
    return Pseudocoreset(np.ones((1, 2)), None, np.ones(1), (), diagnostics)


def test_grade_and_doubt_follow_from_older_statements() -> None:
    stated = read_statement(release_of(trusted=True, noise_kl=3.0), BELIEF)
    assert (stated.grade, stated.noise_kl) == ("calibrated", 3.0)
    np.testing.assert_allclose(stated.doubt, 3.0 * np.diag([0.25, 0.0625]))
    assert read_statement(release_of(trusted=False, noise_kl=3.0), BELIEF).grade == "not-usable"


def test_stated_grade_and_doubt_are_read_from_both_places() -> None:
    doubt = np.array([[1.0, 0.5], [0.5, 2.0]])
    diagnostics = {"trusted": False, "noise_kl": 1.0, "reliability": "centre-only", "doubt": doubt.tolist()}
    attributes = SimpleNamespace(
        diagnostics={"trusted": False, "noise_kl": 1.0}, reliability="centre-only", doubt=doubt
    )
    for release in (release_of(**diagnostics), attributes):
        stated = read_statement(release, BELIEF)  # type: ignore[arg-type]
        assert stated.grade == "centre-only"
        np.testing.assert_array_equal(stated.doubt, doubt)
    with pytest.raises(ValueError, match="unknown grade"):
        read_statement(release_of(trusted=True, noise_kl=1.0, reliability="good"), BELIEF)


def test_coverage_counts_means_in_both_intervals() -> None:
    """Standard deviations: 1/2 and 1/4 of the posterior, 1 and 1 of doubt."""
    exact = Laplace(BELIEF.mean + np.array([2.1, 1.9]), np.eye(2))
    assert measure_coverage(BELIEF, np.eye(2), exact) == (1.0, 0.5)
    assert measure_coverage(BELIEF, 0 * np.eye(2), exact) == (0.0, 0.0)
    assert measure_coverage(BELIEF, math.nan * np.eye(2), exact) == (0.0, 0.0)


def test_a_bad_release_is_calibrated_and_far_off() -> None:
    assert not is_bad(GOOD)
    assert is_bad(replace(GOOD, kl=31.0))
    assert not is_bad(replace(GOOD, kl=31.0, noise_kl=7.0))
    assert is_bad(replace(GOOD, kl=36.0, noise_kl=7.0))
    assert is_bad(replace(GOOD, kl=math.nan))
    assert not is_bad(replace(GOOD, kl=31.0, grade="centre-only"))
    assert not is_bad(replace(GOOD, kl=math.nan, failure="no reference: NoMode"))
    assert compute_ratio(replace(GOOD, kl=60.0)) == 10


def test_the_page_counts_failures_and_grades() -> None:
    failed = replace(GOOD, kl=math.nan, grade="", failure="ValueError")
    centre = replace(GOOD, grade="centre-only", kl=100.0, noise_coverage=0.0)
    text = render_page([GOOD, replace(GOOD, kl=60.0), failed, centre], "reliability.csv", {"commit": "abc"})
    expected = "| 4 | 1 | 50% | 1 (50%) | 10.0 | 100% | 50% | 33% | 30.0 | 22.2 |"
    for name in ("**all**", "**well-behaved**", "ε = 0.2", "logistic"):
        assert f"| {name} {expected}" in text
    assert "| logistic | 2 of 4; 1; 100%, 50% |" in text
    assert "| 3 | logistic | 0.2 | 60.0 | 2.00 | 10.0 | 500 x 2 normal |" in text
    assert "seed 9" in " ".join(text.split())


def test_targets_state_what_holds_and_what_fails() -> None:
    """One bad release of 200 is allowed, two are not. Coverage of 1 is too much, and of 0.95 right."""
    good = [replace(GOOD, coverage=0.95) for _ in range(199)]
    bad = replace(GOOD, coverage=0.95, kl=10 * 30.0)
    assert [each.holds for each in list_targets([*good, bad])] == [True] * 5
    assert [each.holds for each in list_targets([*good, bad, bad])] == [False, *[True] * 4]
    assert [each.holds for each in list_targets([*good, replace(bad, kl=301.0)])] == [True, False, *[True] * 3]
    assert [each.holds for each in list_targets([*good, *[replace(GOOD, grade="centre-only")] * 50])][2] is False
    assert [each.holds for each in list_targets([*good, replace(GOOD, kind="one row", coverage=1.0)])][3:] == [
        False
    ] * 2
    assert [each.holds for each in list_targets([*good, replace(GOOD, epsilon=1.0)])][3:] == [True, False]
    assert [each.holds for each in list_targets([replace(GOOD, grade="centre-only", kind="one row")])] == [None] * 5
    assert list_targets([*good, bad])[0].measured.startswith("1 of 200: 0.5% (95 % interval: 0.0% to 2.8%)")


def test_parameters_of_a_release_share_errors() -> None:
    """Two releases of four parameters: both half covered, or one of them wholly."""
    halves = [replace(GOOD, parameters=4, coverage=0.5)] * 2
    whole = [replace(GOOD, parameters=4, coverage=share) for share in (0.0, 1.0)]
    assert estimate_correlation(halves) == 0.0
    assert estimate_correlation(whole) == 1.0
    assert estimate_correlation([GOOD] * 2) == estimate_correlation([]) == 1.0
    mixed = [replace(GOOD, parameters=4, coverage=share) for share in (0.25, 0.75, 0.25, 0.75, 0.5, 0.5, 1.0, 0.0)]
    squares = np.square([each.coverage - 0.5 for each in mixed]) / 0.25
    assert estimate_correlation(mixed) == pytest.approx(np.sum(squares - 1 / 4) / 6)


def test_interval_of_coverage_counts_independent_parameters() -> None:
    """A correlation of 0 counts parameters, of 1 releases. The limits are as for binomial shares."""
    releases = [replace(GOOD, parameters=4, coverage=0.5)] * 5
    for correlation, count in ((0.0, 20), (1.0, 5)):
        exact = binomtest(count // 2, count).proportion_ci(0.95)
        interval = compute_interval([replace(each, coverage=(count // 2) / count) for each in releases], correlation)
        assert interval == pytest.approx((exact.low, exact.high))
    assert compute_interval([GOOD] * 5, 1.0) == pytest.approx((0.025**0.2, 1.0))
    assert compute_interval([replace(GOOD, coverage=0.0)] * 5, 1.0) == pytest.approx((0.0, 1 - 0.025**0.2))


def test_coverage_that_few_releases_leave_open_is_undecided() -> None:
    """Coverage differs between releases as for independent parameters."""
    for coverage, words in (
        ((0.9, 1.0), "1 inside, 0 below, 0 above, 0 undecided"),
        ((0.7, 0.8), "0 inside, 1 below, 0 above, 0 undecided"),
        ((0.998, 1.0), "0 inside, 0 below, 1 above, 0 undecided"),
    ):
        good = [replace(GOOD, parameters=1000, coverage=share) for share in coverage * 100]
        assert list_targets(good)[3].measured.endswith(words)
    assert (
        list_targets([GOOD] * 3)[3].measured
        == "0 of 1; 0 below, 1 above. By intervals: 0 inside, 0 below, 0 above, 1 undecided"
    )


def test_outcomes_are_read_as_they_were_written(tmp_path: Path) -> None:
    lines = [GOOD, replace(GOOD, kl=math.nan, failure="ValueError", trusted=False)]
    write_lines(tmp_path / "a.csv", lines)
    assert [repr(each) for each in read_outcomes(tmp_path / "a.csv")] == [repr(each) for each in lines]
    with (tmp_path / "a.csv").open("a") as stream:
        stream.write("dp-psvi-surr")
    assert len(read_outcomes(tmp_path / "a.csv")) == 2


def test_releases_have_one_seed_for_all_engines() -> None:
    assert derive_seed(1, 2, 0.2) == derive_seed(1, 2, 0.2)
    assert len({derive_seed(*each) for each in ((1, 2, 0.2), (1, 2, 1.0), (1, 3, 0.2), (2, 2, 0.2))}) == 4


@pytest.mark.long
def test_a_table_is_measured_at_each_epsilon_by_each_engine() -> None:
    engines = (
        ENGINE,
        Engine("dp-psvi-surrogate", {"rounds": 4}, "four rounds"),
        Engine("dp-psvi-surrogate", {"no": 1}, "none"),
    )
    lines = measure_table(3, 0, ("one row",), (0.2, 3.0), engines)
    assert [(each.epsilon, each.engine) for each in lines] == [
        (epsilon, name) for epsilon in (0.2, 3.0) for name in ("dp-psvi-surrogate", "four rounds", "none")
    ]
    assert [each.failure for each in lines] == ["", "", "InvalidRequest"] * 2
    assert lines[0].kl != lines[1].kl
    finished = [each for each in lines if not each.failure]
    assert all(math.isfinite(each.kl) and each.floor > 0 and each.grade for each in finished)
    again = measure_table(3, 0, ("one row",), (0.2, 3.0), (ENGINE,))
    assert [each.kl for each in again] == [lines[0].kl, lines[3].kl]


@pytest.mark.long
def test_a_table_without_a_mode_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(case: object) -> Laplace:
        raise NoMode

    monkeypatch.setattr(outcomes, "compute_full_posterior", fail)
    (line,) = measure_table(3, 0, ("one row",), (3.0,), (ENGINE,))
    assert line.failure == "no reference: NoMode"
    assert math.isnan(line.kl)
    assert line.grade


SWEEP = Sweep(9, 4, ("logistic",), (0.2, 1.0), (ENGINE,))


def fake(seed: int, table: int, kinds: object, epsilons: tuple[float, ...], engines: object) -> list[Outcome]:
    return [replace(GOOD, seed=seed, table=table, epsilon=epsilon) for epsilon in epsilons]


def test_a_stopped_sweep_measures_the_other_tables_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with a part of its lines is measured again."""
    asked: list[int] = []

    def measure(seed: int, table: int, *rest: Any) -> list[Outcome]:
        asked.append(table)
        return fake(seed, table, *rest)

    monkeypatch.setattr(sweep, "measure_table", measure)
    stopped = [*fake(9, 2, (), (0.2, 1.0), ()), *fake(9, 0, (), (0.2,), ())]
    write_lines(tmp_path / "a.part", stopped)
    results = run_sweep(SWEEP, tmp_path / "a.csv", 1)
    assert asked == [0, 1, 3]
    assert [(each.table, each.epsilon) for each in results] == [(t, e) for t in range(4) for e in (0.2, 1.0)]
    assert read_outcomes(tmp_path / "a.csv") == results
    assert not (tmp_path / "a.part").exists()


def test_a_sweep_in_turn_has_one_epsilon_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a stop, only missing tables are measured."""
    monkeypatch.setattr(sweep, "measure_table", fake)
    write_lines(tmp_path / "a.part", fake(9, 2, (), (0.2,), ()))
    results = run_sweep(replace(SWEEP, in_turn=True), tmp_path / "a.csv", 1)
    assert [(each.table, each.epsilon) for each in results] == [(0, 0.2), (1, 1.0), (2, 0.2), (3, 1.0)]


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_processes_measure_the_same_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "measure_table", fake)
    assert run_sweep(SWEEP, tmp_path / "a.csv", 2) == run_sweep(SWEEP, tmp_path / "b.csv", 1)


def test_a_part_file_of_another_sweep_is_refused(tmp_path: Path) -> None:
    for other in (replace(GOOD, seed=8), replace(GOOD, epsilon=3.0), replace(GOOD, engine="other")):
        write_lines(tmp_path / "a.part", [other])
        with pytest.raises(ValueError, match="another sweep"):
            run_sweep(SWEEP, tmp_path / "a.csv", 1)


def test_the_seed_is_stated_or_resumed_or_fresh(tmp_path: Path) -> None:
    part = tmp_path / "a.part"
    assert choose_seed(5, part) == 5
    assert choose_seed(None, part) != choose_seed(None, part)
    write_lines(part, [GOOD])
    assert choose_seed(None, part) == 9


def test_an_engine_is_a_method_with_parameters() -> None:
    engine = parse_engine('dp-psvi-surrogate:{"version": 2}')
    assert (engine.method, engine.parameters) == ("dp-psvi-surrogate", {"version": 2})
    assert parse_engine("dp-vi") == Engine("dp-vi", {}, "dp-vi")
    for wrong in ("dp-vi:{", "dp-vi:3"):
        with pytest.raises(argparse.ArgumentTypeError):
            parse_engine(wrong)


def test_a_stopped_sweep_is_resumed_on_request_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "measure_table", fake)
    parser = argparse.ArgumentParser()
    sweep_options.add_options(parser, tmp_path / "a.csv", 2)
    options = ["--groups", "rare", "--epsilons", "1", "0.2"]
    write_lines(tmp_path / "a.part", fake(9, 1, (), (0.2, 1.0), ()))
    with pytest.raises(SystemExit, match="--resume"):
        sweep_options.run_options(parser.parse_args(options), [ENGINE])
    done, results = sweep_options.run_options(parser.parse_args([*options, "--resume"]), [ENGINE])
    assert (done.seed, done.epsilons, len(results)) == (9, (0.2, 1.0), 4)
    assert "saturated labels" in done.kinds
    assert "logistic" not in done.kinds
    assert reliability_page.list_worst(results)[0] in results
