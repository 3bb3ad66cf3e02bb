"""One audit of everything that can be audited on simulated tables, in sections.

Each section is a list of records: plain names and numbers, with ``holds`` for whether the claim was not refuted. Counts
are included, so every bound can be computed again. Bounds hold at 99.9 % each. A claim counts as refuted only at a
chance so small that of 1,000 reports at most one refutes a true claim.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from app.inference.audit.mechanism import CONFIDENCE, DELTA, DENSE_SLOTS, Cell, audit_cell, compute_share
from app.inference.audit.one_run import (
    count_canary_positives,
    count_correct_guesses,
    count_correct_in_runs,
    score_one_run,
)
from app.inference.audit.releases import attack_releases, draw_runs
from app.inference.audit.scenarios import Scenario, list_scenarios
from app.inference.audit.subjects import list_subjects
from app.inference.audit.transcripts import run_once
from app.inference.private_zone.rng import make_monte_carlo_generator
from app.privacy.audit.bounds import (
    Counts,
    bound_epsilon,
    bound_epsilon_by_shape,
    bound_family,
    bound_mean,
    bound_separation,
    count_positives,
    find_separation,
    is_refuted,
)
from app.privacy.audit.guesses import bound_epsilon_by_guesses, compute_accuracy, weigh_shares
from app.privacy.audit.laws import AnswerLaw
from app.privacy.audit.trees import TREES, audit_filter
from app.privacy.filter import design

Record = dict[str, Any]

NOISES: Final = (1.0, 2.0, 5.0)
RATE: Final = 0.02
VISIBLE: Final = 0.05
"""A noise multiplier at which an answer shows whether its canary was in the subsample."""
_MU: Final = 20.0
"""Separation of audited transcripts. It is large, so that few runs suffice."""
EPSILONS: Final = (8.0, 32.0)
"""Claims at which final releases are audited."""
_ONE_RUN: Final = (1000, 16, 150)
"""Canaries, queries and guesses of the audit in one run."""
_RUNS: Final = (100, 16, 80)
"""Canaries, queries and runs of the audit by guesses: the fewest runs that refute half of the planned noise surely."""
_SIMULATIONS: Final = 1000
"""Simulated audits, of which the share with an alarm is the power."""

CHANCE: Final = 1e-3 / 128
"""Chance of refuting one true claim. A report refutes claims in at most 128 ways."""
_MOST_EVIDENCE: Final = -math.log(CHANCE)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of an audit.

    ``answers`` are for each kind of query and size of units in a cell. ``canary_answers`` are for each cell with many
    canaries. ``sampled_answers`` are for the cell that shows most of a sampled claim. ``runs`` are for each
    method and world, and so are ``shadows``, which train the attack on releases, and ``releases``, which test it.
    """

    answers: int
    canary_answers: int
    sampled_answers: int
    runs: int
    shadows: int
    releases: int


Audit = Callable[[Size], Record]
"""An audit of one claim."""

QUICK: Final = Size(40, 100_000, 100_000, 3, 2, 2)
PAGE: Final = Size(300, 2_000_000, 60_000_000, 60, 16, 40)


def choose_size(answers: int | None) -> Size:
    """Choose the size of an audit with this number of answers in each setting; without a number, the quick one."""
    if answers is None:
        return QUICK
    each = max(2, answers // (2 * len(list_subjects())))
    runs, shadows, releases = (
        max(least, min(most, answers // 10_000))
        for least, most in (
            (QUICK.runs, PAGE.runs),
            (QUICK.shadows, PAGE.shadows),
            (QUICK.releases, PAGE.releases),
        )
    )
    return Size(each, answers, answers, runs, shadows, releases)


def audit_contributions(_: Size) -> Iterator[Record]:
    """Compute the realised share of the bound for every kind of query, without statistics."""
    for subject in list_subjects():
        shares = [compute_share(subject, rows) for rows in (1, 3)]
        yield {"query": subject.name, "one_row": shares[0], "three_rows": shares[1], "holds": max(shares) <= 1}


def audit_mechanism(size: Size) -> Iterator[Record]:
    """Audit every kind of query in every cell of noise and sampling rate."""
    cells = [Cell(noise, rate, size.answers) for rate in (1.0, RATE) for noise in NOISES]
    for cell in (*cells, Cell(2.0, 0.3, size.answers, slots=DENSE_SLOTS)):
        found = audit_cell(cell)
        yield {
            "noise": cell.noise,
            "rate": cell.rate,
            "counts": _list_counts(found.counts),
            "epsilon": found.epsilon,
            "by_shape": found.by_shape,
            "alone": found.alone,
            "law_evidence": found.law_evidence,
            "privacy_evidence": found.privacy_evidence,
            "holds": found.holds(CHANCE),
        }


def list_canary_audits() -> list[Audit]:
    """List audits with many canaries in each answer, which is fast.

    More noise than 1 at a small rate shows nothing in this many answers.
    """
    claims = [*(AnswerLaw(noise) for noise in NOISES), AnswerLaw(1.0, RATE)]
    return [partial(audit_many_answers, claim) for claim in claims]


def audit_sampling(size: Size) -> Iterator[Record]:
    """Audit the sampling rate at a noise that hides nothing."""
    yield audit_many_answers(AnswerLaw(VISIBLE, RATE), size)


def audit_many_answers(claim: AnswerLaw, size: Size) -> Record:
    """Audit one claim with answers about orthogonal canaries.

    There are more of them where one answer shows less.
    """
    answers = {(1.0, RATE): size.sampled_answers, (5.0, 1.0): 3 * size.canary_answers}
    counts, evidence = count_canary_positives(
        claim, answers.get((claim.noise, claim.rate), size.canary_answers), CONFIDENCE
    )
    return {
        "noise": claim.noise,
        "rate": claim.rate,
        "counts": _list_counts(counts),
        "epsilon": claim.compute_epsilon(DELTA),
        "by_shape": bound_epsilon_by_shape(counts, claim, DELTA, CONFIDENCE),
        "parameter": bound_family(counts, claim, CONFIDENCE),
        "law_evidence": evidence,
        "holds": evidence < _MOST_EVIDENCE and not is_refuted(counts, claim, 1 - CHANCE),
    }


def list_transcript_audits() -> list[Audit]:
    """List audits of whole runs of every private method and its variants."""
    return [partial(audit_transcript, scenario) for scenario in list_scenarios()]


def audit_transcript(scenario: Scenario, size: Size) -> Record:
    """Audit whole runs of one scenario."""
    runs = [run_once(scenario, _MU, present=flag) for flag in (True, False) for _ in range(size.runs)]
    statistics, present = np.array([run.statistic for run in runs]), np.array([run.present for run in runs]) * 1.0
    claim = AnswerLaw(1 / runs[0].claim)
    counts = count_positives(statistics, present, runs[0].claim / 2)
    worlds = statistics[present == 1], statistics[present == 0]
    shown = bound_mean(*worlds, CONFIDENCE)
    is_within = all(run.reached <= run.claim * (1 + 1e-12) for run in runs)
    return {
        "method": scenario.name,
        "runs": len(runs),
        "mu": runs[0].claim,
        "reached": float(np.mean([run.reached for run in runs if run.present])),
        "shown": shown,
        "by_threshold": bound_separation(counts, CONFIDENCE),
        "epsilon": claim.compute_epsilon(DELTA),
        "by_shape": _price(shown),
        "counts": _list_counts(counts),
        "holds": is_within and bound_mean(*worlds, 1 - CHANCE) <= runs[0].claim,
    }


def list_release_audits() -> list[Audit]:
    """List audits of the final release alone, of every private method."""
    plain = [scenario for scenario in list_scenarios() if not scenario.parameters]
    return [partial(audit_release, scenario, epsilon) for scenario in plain for epsilon in EPSILONS]


def audit_release(scenario: Scenario, epsilon: float, size: Size) -> Record:
    """Audit final releases of one scenario at one claim, and their answers."""
    mu = find_separation(epsilon, DELTA)
    shadows, fresh = (draw_runs(scenario, mu, count) for count in (size.shadows, size.releases))
    claim, found = AnswerLaw(1 / mu), attack_releases(shadows, fresh)
    present = np.concatenate([shadows.present, fresh.present])
    statistics = np.concatenate([shadows.statistics, fresh.statistics])
    worlds = statistics[present == 1], statistics[present == 0]
    return {
        "method": scenario.name,
        "shadows": len(shadows.present),
        "runs": len(fresh.present),
        "mu": mu,
        "shown": bound_separation(found.by_shape, CONFIDENCE),
        "estimate": found.estimate,
        "epsilon": epsilon,
        "by_shape": bound_epsilon_by_shape(found.by_shape, claim, DELTA, CONFIDENCE),
        "alone": bound_epsilon(found.alone, DELTA, CONFIDENCE),
        "by_answers": _price(bound_mean(*worlds, CONFIDENCE)),
        "counts": _list_counts(found.by_shape),
        "holds": not is_refuted(found.by_shape, claim, 1 - CHANCE) and bound_mean(*worlds, 1 - CHANCE) <= mu,
    }


def _price(separation: float) -> float:
    """Price a bound on mu as epsilon."""
    return AnswerLaw(1 / separation).compute_epsilon(DELTA) if separation > 0 else 0.0


def audit_one_run(_: Size) -> Iterator[Record]:
    """Audit one run with many canaries, by guesses and by shape."""
    canaries, queries, guesses = _ONE_RUN
    for noise in (2.0, 4.0):
        scores = score_one_run(AnswerLaw(noise), queries, canaries)
        correct = count_correct_guesses(scores, guesses)
        claim = AnswerLaw(noise / np.sqrt(queries))
        epsilon = claim.compute_epsilon(DELTA)
        counts = count_positives(scores.answers, scores.present, 0.0)
        by_guesses = bound_epsilon_by_guesses(canaries, guesses, correct, DELTA, CONFIDENCE)
        by_shape = bound_epsilon_by_shape(counts, claim, DELTA, CONFIDENCE)
        strictly = bound_epsilon_by_guesses(canaries, guesses, correct, DELTA, 1 - CHANCE)
        yield {
            "noise": noise,
            "queries": queries,
            "canaries": canaries,
            "guesses": guesses,
            "correct": correct,
            "epsilon": epsilon,
            "by_guesses": by_guesses,
            "most_by_guesses": bound_epsilon_by_guesses(canaries, guesses, guesses, DELTA, CONFIDENCE),
            "by_shape": by_shape,
            "holds": strictly <= epsilon and not is_refuted(counts, claim, 1 - CHANCE),
        }


def audit_guesses(_: Size) -> Iterator[Record]:
    """Audit several runs with many canaries, by guesses alone."""
    canaries, queries, runs = _RUNS
    noise = 4.0
    claim = AnswerLaw(noise / np.sqrt(queries))
    correct = count_correct_in_runs(AnswerLaw(noise), queries, canaries, runs)
    evidence = float(weigh_shares(correct / canaries, claim).max(initial=0.0))
    yield {
        "noise": noise,
        "queries": queries,
        "canaries": canaries,
        "runs": runs,
        "epsilon": claim.compute_epsilon(DELTA),
        "correct": correct.astype(int).tolist(),
        "accuracy": float(np.mean(correct)) / canaries,
        "most_accuracy": compute_accuracy(claim),
        "power": simulate_power(claim, canaries, runs),
        "privacy_evidence": evidence,
        "holds": evidence < _MOST_EVIDENCE,
    }


def simulate_power(claim: AnswerLaw, canaries: int, runs: int) -> float:
    """Simulate how often runs refute ``claim`` if noise has half of its scale."""
    truth = compute_accuracy(replace(claim, noise=claim.noise / 2))
    shares = make_monte_carlo_generator().binomial(canaries, truth, (_SIMULATIONS, runs)) / canaries
    return float(np.mean(weigh_shares(shares, claim).max(axis=1) >= _MOST_EVIDENCE))


def audit_filters(_: Size) -> Iterator[Record]:
    """Evaluate adaptive trees exactly, against the filter and against rules that must fail."""
    for found in (audit_filter(design, tree) for tree in TREES):
        yield {
            "epsilon": found.tree.epsilon,
            "delta": found.tree.delta,
            "levels": found.tree.depth,
            "filter": found.by_filter,
            "wide_filter": found.by_wide_filter,
            "free_minimum": found.by_free_minimum,
            "without_union_bound": found.without_union_bound,
            "holds": max(found.by_filter, found.by_wide_filter) <= 1 < found.by_free_minimum,
        }


def _list_counts(counts: Counts) -> list[int]:
    """List true positives, answers with the canary, false positives, answers without."""
    return [int(number) for number in (counts.true, counts.present, counts.false, counts.absent)]


_PARTS: Final[dict[str, Callable[[], list[Audit]]]] = {
    "canaries": list_canary_audits,
    "transcripts": list_transcript_audits,
    "releases": list_release_audits,
}
"""Sections with one record for each audit."""


def _audit_parts(section: str, size: Size) -> Iterator[Record]:
    return (audit(size) for audit in _PARTS[section]())


SECTIONS: Final[dict[str, Callable[[Size], Iterator[Record]]]] = {
    "contributions": audit_contributions,
    "mechanism": audit_mechanism,
    "canaries": partial(_audit_parts, "canaries"),
    "sampling": audit_sampling,
    "transcripts": partial(_audit_parts, "transcripts"),
    "releases": partial(_audit_parts, "releases"),
    "one-run": audit_one_run,
    "guesses": audit_guesses,
    "filter": audit_filters,
}


def list_tasks(section: str, size: Size) -> list[Callable[[], list[Record]]]:
    """List the parts of a section that may run in separate processes; their records follow each other."""
    if section in _PARTS:
        return [partial(lambda audit: [audit(size)], audit) for audit in _PARTS[section]()]
    return [lambda: list(SECTIONS[section](size))]
