"""The report: every section holds, and a broken rule or mechanism is reported."""

from collections.abc import Callable

import numpy as np
import pytest

from app.inference.audit import report
from app.inference.audit.releases import Runs
from app.inference.audit.report import CHANCE, EPSILONS, SECTIONS, Size, choose_size, simulate_power
from app.inference.audit.scenarios import list_scenarios
from app.inference.audit.subjects import list_subjects
from app.inference.private_zone import mechanisms
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.queries import blocks
from app.privacy.audit.laws import AnswerLaw
from app.privacy.filter import Filter, design

TINY = Size(3, 10_000, 10_000, 2, 2, 2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("section", "epsilons"),
    [
        *(pytest.param(section, EPSILONS[:1], id=section) for section in SECTIONS),
        pytest.param("releases", EPSILONS[1:], id="releases of other epsilons", marks=pytest.mark.sweep),
    ],
)
def test_w12_every_claim_of_the_report_holds(
    section: str, epsilons: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """W12: fails by chance less than once in 10**7."""
    monkeypatch.setattr(report, "CHANCE", 1e-9)
    monkeypatch.setattr(report, "_MOST_EVIDENCE", 20.0)
    monkeypatch.setattr(report, "EPSILONS", epsilons)
    records = list(SECTIONS[section](TINY))
    assert records
    assert [record for record in records if not record["holds"]] == []


def test_the_number_of_claims_is_below_the_stated_one() -> None:
    """Cells are refuted in three ways at most; methods, runs and releases in two, guesses in several runs in one."""
    scenarios = len(list_scenarios())
    assert round(1e-3 / CHANCE) >= 7 * 3 + 7 * 2 + scenarios * 2 + 2 * 2 + scenarios * len(EPSILONS) * 2 + 1


@pytest.mark.long
def test_too_little_noise_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """W7: with half of the noise, cells at rate 1 are refuted."""
    original: Callable[..., object] = DiscreteGaussian._draw
    monkeypatch.setattr(DiscreteGaussian, "_draw", lambda self, count, scale: original(self, count, scale / 2))
    records = list(SECTIONS["canaries"](TINY))
    assert not any(record["holds"] for record in records if record["rate"] == 1)


def test_a_contribution_beyond_its_bound_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """W5: two hundredths beyond the bound."""
    original = mechanisms.clip_to_grid
    monkeypatch.setattr(blocks, "clip_to_grid", lambda *args: 1.02 * original(*args))
    assert any(not record["holds"] for record in SECTIONS["contributions"](TINY))


def test_a_filter_of_three_deltas_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """W9: three orders that each use the whole delta."""

    def careless(epsilon: float, delta: float) -> Filter:
        chosen = design(epsilon, delta)
        return Filter(epsilon, 3 * delta, chosen.orders, chosen.weights)

    monkeypatch.setattr(report, "design", careless)
    assert any(not record["holds"] for record in SECTIONS["filter"](TINY))


def test_sizes_follow_the_number_of_answers() -> None:
    assert choose_size(None) == report.QUICK
    total = 10_000 * 2 * len(list_subjects())
    found = choose_size(total)
    assert (found.answers, found.canary_answers) == (10_000, total)
    assert (found.runs, found.shadows, found.releases) == tuple(
        min(total // 10_000, most) for most in (report.PAGE.runs, report.PAGE.shadows, report.PAGE.releases)
    )


def test_w12_a_release_that_shows_its_canary_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """W12: releases from which the canary can be read exceed every claim; the same attack on noise does not."""
    runs, rng = 2000, np.random.default_rng(0)
    present = np.repeat([1.0, 0.0], runs)

    def draw(separation: float) -> Callable[..., Runs]:
        noise = rng.standard_normal(2 * runs)
        return lambda *_: Runs(separation * present[:, None] + rng.standard_normal((2 * runs, 2)), present, noise)

    size = Size(3, 10_000, 10_000, 2, runs, runs)
    for separation, holds in ((0.0, True), (20.0, False)):
        monkeypatch.setattr(report, "draw_runs", draw(separation))
        assert {record["holds"] for record in SECTIONS["releases"](size)} == {holds}


def test_w12_answers_that_show_more_than_the_claim_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """W12: also if the releases of the same runs show nothing."""
    runs, rng = 200, np.random.default_rng(0)
    present = np.repeat([1.0, 0.0], runs)
    for factor, holds in ((1.0, True), (1.5, False)):

        def draw(_: object, mu: float, __: int, factor: float = factor) -> Runs:
            noise = rng.standard_normal((2, 2 * runs))
            return Runs(noise[:1].T, present, factor * mu * present + noise[1])

        monkeypatch.setattr(report, "draw_runs", draw)
        assert {record["holds"] for record in SECTIONS["releases"](Size(3, 10_000, 10_000, 2, 2, 2))} == {holds}


@pytest.mark.long
def test_w12_half_of_the_noise_is_refuted_by_guesses_in_several_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """W7, W12: the audit that assumes nothing about canaries finds it; sixty runs are too few."""
    assert simulate_power(AnswerLaw(1.0), 100, 80) == 1
    assert simulate_power(AnswerLaw(1.0), 100, 60) < 0.05
    original: Callable[..., object] = DiscreteGaussian._draw
    monkeypatch.setattr(DiscreteGaussian, "_draw", lambda self, count, scale: original(self, count, scale / 2))
    records = list(SECTIONS["guesses"](TINY))
    assert [record["holds"] for record in records] == [False]
