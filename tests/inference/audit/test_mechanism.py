"""The audit of the mechanism: true claims hold, and each way to break one is found."""

import importlib
import math
import pkgutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from app.inference import conjugate
from app.inference.audit.mechanism import Cell, audit_cell, compute_share, draw_sample
from app.inference.audit.subjects import COLUMNS, Subject, list_subjects
from app.inference.audit.tables import make_facts
from app.inference.conjugate import make_conjugate_problem
from app.inference.core import designs
from app.inference.core.statistics import STATISTIC_KINDS
from app.inference.private_zone import mechanisms, queries
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.queries import blocks
from app.privacy.audit.thresholds import ALARM

SUBJECTS = list_subjects()
EVERY = pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
LEAST = math.log(ALARM)
CHANCE = 1e-9


def test_w12_every_kind_of_query_has_a_subject() -> None:
    """W12: a kind that production answers is audited, and no class of a query is left out of the kinds."""
    names = [each.name for each in pkgutil.iter_modules(queries.__path__)]
    modules = [importlib.import_module(f"{queries.__name__}.{name}") for name in names]
    classes = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    written = {each for each in classes if isinstance(getattr(each, "kind", None), str)}
    assert written == set(queries._ALL), "W12: a class of queries is not listed"
    assert {type(subject.query) for subject in SUBJECTS} == written, "W12: a kind of query has no audit"


def test_w12_every_kind_of_term_has_a_subject() -> None:
    """W12: designs with every kind of term are audited."""
    features = {type(feature) for subject in SUBJECTS for feature in subject.spec.features}
    assert features == {str, *designs._TERMS.values()}, "W12: a kind of term has no audit"


def test_w12_every_conjugate_model_has_a_subject() -> None:
    """W12: statistics of every model that has them are audited, fixed and moving ones."""
    asked = {
        (subject.spec.family, getattr(subject.query, "moving", True))
        for subject in SUBJECTS
        if subject.query.kind in STATISTIC_KINDS
    }
    for family in conjugate._MAKERS:
        spec = next(subject.spec for subject in SUBJECTS if subject.spec.family == family)
        model = make_conjugate_problem(spec, make_facts(COLUMNS, 1, 1, grouped=True)).model
        for moving in (False, True):
            if model.list_blocks(model.largest_radius, moving=moving):
                assert (family, moving) in asked, f"W12: statistics of {family} have no audit"


@EVERY
@pytest.mark.parametrize("rows", [1, 3])
def test_w5_a_canary_reaches_the_bound_and_does_not_exceed_it(subject: Subject, rows: int) -> None:
    """W5: without statistics. The contribution would be far longer without clipping."""
    assert 0.998 < compute_share(subject, rows) <= 1


@EVERY
@pytest.mark.long
def test_aligned_answers_have_the_claimed_law(subject: Subject) -> None:
    """W4, W5, W7: with and without the canary, by Kolmogorov and Smirnov, and chi-square for the scale.

    Fails by chance less than once in 10**8. Noise that is too small by the factor 0.7 is found, except once in 1,000.
    """
    sample = draw_sample(subject, Cell(2.0, 1.0, 400), 3)
    standard = (sample.answers - sample.present) / 2.0
    for present in (0.0, 1.0):
        assert stats.kstest(standard[sample.present == present], "norm").pvalue > CHANCE
    assert CHANCE < stats.chi2.cdf(float(np.sum(np.square(standard))), len(standard)) < 1 - CHANCE


@pytest.mark.slow
@pytest.mark.parametrize("cell", [Cell(1.0, 1.0, 60), Cell(1.0, 0.02, 60), Cell(5.0, 0.3, 20, (1,), 400)])
@pytest.mark.long
def test_w12_the_claim_of_the_mechanism_holds(cell: Cell) -> None:
    """W12: no test refutes the claim, and neither e-process does; fails by chance once in 10**8."""
    found = audit_cell(cell)
    assert found.law_evidence < -math.log(CHANCE), "W4, W5 or W7: the answers do not have the claimed law"
    assert found.privacy_evidence < -math.log(CHANCE), "W12: the trade-off function does not hold"
    assert found.holds(CHANCE), "W12: the attack exceeds the guarantee"
    assert found.counts.present + found.counts.absent == cell.answers * len(cell.rows_per_unit) * len(SUBJECTS)


@pytest.mark.long
@pytest.mark.sweep
def test_the_audit_shows_most_of_the_claimed_epsilon() -> None:
    """Power: with 9,600 answers it shows more than 75 % of epsilon, and the bound from one point far less."""
    found = audit_cell(Cell(1.0, 1.0, 300, (1, 3)))
    assert 0.75 < found.share < 1.1
    assert found.alone < 0.64 * found.epsilon
    assert found.by_subject.keys() == {subject.name for subject in SUBJECTS}


def _quieter(patch: pytest.MonkeyPatch) -> None:
    original: Any = DiscreteGaussian._draw
    patch.setattr(DiscreteGaussian, "_draw", lambda self, count, scale: original(self, count, 0.8 * scale))


def _longer(patch: pytest.MonkeyPatch) -> None:
    original = mechanisms.clip_to_grid
    patch.setattr(blocks, "clip_to_grid", lambda values, there, clip: 1.5 * original(values, there, clip))


def _rarely_unclipped(patch: pytest.MonkeyPatch) -> None:
    original, calls = mechanisms.clip_to_grid, iter(range(10**9))
    patch.setattr(
        blocks,
        "clip_to_grid",
        lambda values, there, clip: (
            np.rint(values * (mechanisms.GRID / clip)) if next(calls) % 50 == 49 else original(values, there, clip)
        ),
    )


BROKEN: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "a fifth less noise": _quieter,
    "contributions half as long again": _longer,
    "one contribution in fifty not clipped": _rarely_unclipped,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_the_audit_fails_for_a_broken_mechanism(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The auditor can fail: the same cell passes without the defect."""
    subject = next(each for each in SUBJECTS if each.name == "mean_sum")
    cell = Cell(1.0, 1.0, 700, (1,))
    assert audit_cell(cell, [subject]).holds(CHANCE)
    BROKEN[name](monkeypatch)
    assert audit_cell(cell, [subject]).law_evidence > LEAST


@pytest.mark.long
def test_the_audit_fails_for_a_higher_sampling_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """W4: three times the priced rate."""
    subject = next(each for each in SUBJECTS if each.name == "mean_sum")
    cell = Cell(0.5, 0.1, 2500, (1,))
    assert audit_cell(cell, [subject]).holds(CHANCE)
    original: Any = Subject.make_plan
    monkeypatch.setattr(Subject, "make_plan", lambda *args: original(args[0], args[1], 3 * args[2], args[3]))
    found = audit_cell(cell, [subject])
    assert found.law_evidence > LEAST
    assert found.privacy_evidence > LEAST
    assert not found.holds(1 / ALARM)


def test_an_unclipped_canary_shows_in_the_share(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = next(each for each in SUBJECTS if each.name == "moment_sum")
    _longer(monkeypatch)
    assert compute_share(subject, 1) > 1.4
    assert compute_share(replace(subject, clip=3.0), 1) < 1
