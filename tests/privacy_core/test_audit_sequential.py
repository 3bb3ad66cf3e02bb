"""E-processes: evidence against a true claim stays small, and false claims are found as fast as computed."""

import math
from dataclasses import replace

import numpy as np
import pytest

from app.privacy.audit.laws import AnswerLaw, Array64
from app.privacy.audit.sequential import Alternative, LawWatch, PrivacyWatch, find_alarm, list_alternatives
from app.privacy.audit.thresholds import ALARM

CLAIMS = [AnswerLaw(1.0), AnswerLaw(2.0, 0.1)]
EVERY = pytest.mark.parametrize("claim", CLAIMS)


def _draw(rng: np.random.Generator, law: AnswerLaw, n: int) -> tuple[Array64, Array64]:
    present = rng.integers(0, 2, n).astype(float)
    is_in = present * (rng.random(n) < law.rate)
    return law.noise * rng.standard_normal(n) + law.shift * is_in, present


@EVERY
def test_every_likelihood_ratio_has_mean_one_under_the_claim(claim: AnswerLaw) -> None:
    """Exact, by quadrature: each factor of the evidence is fair, so it is an e-process."""
    x = np.sinh(np.linspace(-14, 14, 400_001))
    step = np.gradient(x)
    for present in (0.0, 1.0):
        flags = np.full(len(x), present)
        for each in list_alternatives(claim):
            assert float(np.sum(np.exp(each.compute_log_density(x, flags)) * step)) == pytest.approx(1, abs=1e-4)


@EVERY
def test_no_bet_gains_on_average_under_the_claim(claim: AnswerLaw) -> None:
    """Exact: the expected gain of every bet is zero under the claim, and negative under a more private law."""
    watch = PrivacyWatch(claim)
    for law, most in ((claim, 1e-12), (replace(claim, noise=1.1 * claim.noise), 0.0)):
        true, false = (law.exceed(watch._events, present=present) for present in (True, False))
        gains = true / 2 - watch._slopes * false / 2 - watch._deltas / 2
        assert np.all(gains <= most)
        assert law is claim or np.all(gains < 0)
    quieter = replace(claim, noise=0.9 * claim.noise)
    true, false = (quieter.exceed(watch._events, present=present) for present in (True, False))
    assert np.any(true - watch._slopes * false > watch._deltas)


@EVERY
@pytest.mark.parametrize("kind", [LawWatch, PrivacyWatch])
def test_true_claims_raise_few_alarms(claim: AnswerLaw, kind: type[LawWatch] | type[PrivacyWatch]) -> None:
    """Of 300 watches, at most 1 in 20 may reach 20.

    More than 34 would have a chance of 10**-5.
    """
    rng = np.random.default_rng(1)
    alarms = sum(find_alarm(kind(claim).add(*_draw(rng, claim, 400)), 20.0) is not None for _ in range(300))
    assert alarms <= 34


@EVERY
def test_law_watches_need_the_computed_number_of_answers(claim: AnswerLaw) -> None:
    """Power, known beforehand: the mean number of answers until the alarm is the computed one."""
    truth = Alternative("a tenth less noise", replace(claim, noise=0.9 * claim.noise))
    expected = LawWatch(claim).expect_answers(truth)
    rng = np.random.default_rng(2)
    found = [find_alarm(LawWatch(claim).add(*_draw(rng, truth.law, int(6 * expected)))) for _ in range(40)]
    assert None not in found
    assert 0.6 < np.mean([each for each in found if each]) / expected < 1.3


def test_privacy_watches_find_too_little_noise() -> None:
    """Two thirds of the noise, from the trade-off function alone; the law of answers is not used."""
    claim = AnswerLaw(1.0)
    rng = np.random.default_rng(3)
    assert find_alarm(PrivacyWatch(claim).add(*_draw(rng, AnswerLaw(2 / 3), 3000))) is not None
    assert find_alarm(PrivacyWatch(claim).add(*_draw(rng, AnswerLaw(1.5), 3000))) is None


def test_one_contribution_beyond_the_bound_in_a_thousand_is_found() -> None:
    claim, n = AnswerLaw(5.0), 20_000
    rng = np.random.default_rng(4)
    answers, present = _draw(rng, claim, n)
    answers += 200.0 * present * (rng.random(n) < 1e-3)
    found = find_alarm(LawWatch(claim).add(answers, present))
    assert found is not None
    assert found < 6000


def test_evidence_does_not_depend_on_how_answers_are_split() -> None:
    rng = np.random.default_rng(5)
    answers, present = _draw(rng, AnswerLaw(0.9), 100)
    for kind in (LawWatch, PrivacyWatch):
        whole, parts = kind(AnswerLaw(1.0)), kind(AnswerLaw(1.0))
        paths = [parts.add(answers[part], present[part]) for part in (slice(0, 33), slice(33, 100))]
        np.testing.assert_allclose(whole.add(answers, present), np.concatenate(paths), atol=1e-9)


def test_an_alarm_is_the_first_answer_with_enough_evidence() -> None:
    assert find_alarm(np.array([0.0, 8.0, 1.0])) == 2
    assert find_alarm(np.array([0.0, math.log(ALARM) - 1e-6])) is None
