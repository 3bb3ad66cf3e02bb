"""Nats are believed where numbers' information is known: one fault at a time in a build that is believed."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from app.inference.methods.surrogate import credibility
from app.inference.methods.surrogate.credibility import believable
from app.inference.methods.surrogate.state import State
from support.surrogate_tables import Case, Drawn, build, run_all_steps

FAMILIES = ("linear-regression", "poisson-regression", "gaussian-mean", "logistic-regression")
SURPRISING = 1.01 * credibility.MOST_SURPRISE_OF_NUMBERS


@cache
def _ended(family: str) -> State:
    return run_all_steps(Case(family, features=2), 1.0)


@pytest.mark.parametrize("family", FAMILIES)
def test_an_ordinary_build_is_believed(family: str) -> None:
    assert believable(_ended(family))


def _noisier(state: State, times: float) -> State:
    assert state.mode is not None
    return replace(state, mode=replace(state.mode, variance=times * state.mode.variance))


def _moved(state: State, by: float) -> State:
    """The last score was asked elsewhere in the last parameter: a noise scale, or an intercept."""
    *earlier, last = state.scores
    elsewhere = last.theta + by * np.eye(len(last.theta))[-1]
    return replace(state, scores=(*earlier, replace(last, theta=elsewhere)))


def _bounded(state: State) -> State:
    """The last scores kept 0.6 of the information, the least that is ever said of all directions."""
    return replace(state, scores=tuple(replace(score, kept=0.6) for score in state.scores))


def _miscounted(state: State) -> State:
    """The count of units was answered with a thousandth of them; what is believed of it has a floor."""
    assert state.moments is not None
    answer = state.moments.answer.copy()
    answer[0] *= 1e-3
    return replace(state, moments=replace(state.moments, answer=answer))


def _told(state: State, times: float) -> State:
    """The last parameter's information is so many times as large."""
    root = np.ones(len(state.theta))
    root[-1] = np.sqrt(times)
    return replace(state, information=state.information * np.outer(root, root))


@pytest.mark.parametrize(
    ("family", "fault"),
    [
        *((family, _miscounted) for family in FAMILIES[:3]),
        *((family, lambda state: _noisier(state, 2e4)) for family in FAMILIES[:2]),
        *((family, lambda state: _moved(state, 0.5)) for family in FAMILIES[:2]),
        *((family, lambda state: replace(state, surprise=SURPRISING)) for family in FAMILIES[:3]),
        *((family, lambda state: replace(state, surprise=np.nan)) for family in FAMILIES[:3]),
        *((family, lambda state: replace(state, mode=None)) for family in FAMILIES[:3]),
        *((family, _bounded) for family in FAMILIES[:3]),
        ("linear-regression", lambda state: _told(state, 5.0)),
        ("linear-regression", lambda state: _told(state, 0.2)),
    ],
)
def test_no_fault_is_believed(family: str, fault: Callable[[State], State]) -> None:
    assert not believable(fault(_ended(family)))


def test_labels_are_believed_wherever_units_are_counted() -> None:
    state = _moved(_noisier(_ended("logistic-regression"), 1e4), 0.5)
    assert believable(state)
    assert not believable(_miscounted(state))
    assert not believable(replace(state, mode=None))


@pytest.mark.parametrize("rows", [0, 20])
def test_a_table_of_hardly_a_row_is_not_trusted(rows: int) -> None:
    """Slots that turned out to be empty: what is released is noise, however sure its labels seem."""
    case = Case(features=1, rows=rows, slots=4000)
    for seed in range(5):
        assert not build(case, case.plan(8.0), Drawn(seed), seed).diagnostics["trusted"]
