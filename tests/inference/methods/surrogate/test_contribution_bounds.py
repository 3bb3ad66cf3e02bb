"""The room that units have in scores and matrices, and the noise that is believed of them."""

from typing import Any

import numpy as np
import pytest

from app.inference.core.model import Array64
from app.inference.methods.surrogate.answer import Answer
from app.inference.methods.surrogate.contribution_bounds import information_bound
from app.inference.methods.surrogate.method import DpPsviSurrogate
from app.inference.private_zone.mechanisms import MAX_SCALE
from app.inference.private_zone.queries import InformationSum
from app.privacy.events import GaussianEvent
from support.surrogate_tables import Case, Drawn, build, compute_losses


@pytest.mark.parametrize(
    ("design", "rows", "unknown"), [("normal", 50_000, False), ("rare", 50_000, False), ("rare", 25_000, True)]
)
def test_w5_a_matrix_is_asked_within_the_bound_that_its_noise_is_believed_by(
    design: str, rows: int, *, unknown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound follows a noised answer; noise is that bound times the planned multiplier, and believed to be."""
    case = Case(design=design, features=9, rows=rows, slots=rows)
    plan = case.plan(20.0)
    bounds: list[float] = []
    believed: list[float] = []
    sums, answers = InformationSum.sum, Answer.corrects

    def recorded(query: InformationSum, *rest: Any) -> Any:
        bounds.append(query.bound)
        return sums(query, *rest)

    def heard(answer: Answer, belief: Array64) -> Array64:
        believed.append(answer.noise)
        return answers(answer, belief)

    monkeypatch.setattr(InformationSum, "sum", recorded)
    monkeypatch.setattr(Answer, "corrects", heard)
    build(case, plan, Drawn(0))
    events = [query.event for query in plan.queries if query.kind == "information_sum"]
    first = events[0]
    assert isinstance(first, GaussianEvent)
    assert set(events) == {first}
    for bound in bounds:
        assert any(noise == pytest.approx(first.noise_multiplier * bound) for noise in believed)
    schedule = DpPsviSurrogate().init(plan, case.facts, np.random.default_rng(0)).setup.schedule
    narrow, wide = information_bound(schedule, 0, 1.0), information_bound(schedule, 0)
    assert bounds[0] == pytest.approx(wide if unknown else narrow, rel=0.05)
    assert wide > 1.3 * narrow


@pytest.mark.parametrize("family", ["logistic-regression", "gaussian-mean"])
def test_w14_noise_beyond_the_grid_leaves_no_query_without_a_share(family: str) -> None:
    """The first scores have the least shares, and then the most noise that the grid bears."""
    case = Case(family, features=4)
    plan = case.plan(4e8)
    schedule = DpPsviSurrogate().init(plan, case.facts, np.random.default_rng(0)).setup.schedule
    planned = [query.event for query in plan.queries if query.kind == "bounded_score_sum"]
    assert MAX_SCALE in {event.noise_multiplier for event in planned if isinstance(event, GaussianEvent)}
    for event, share in zip(planned, schedule.score_shares, strict=True):
        assert isinstance(event, GaussianEvent)
        assert schedule.multiplier(share) == pytest.approx(event.noise_multiplier)


def test_nearly_certain_labels_have_the_room_that_the_few_others_need() -> None:
    """Separable ones: without, matrices take what they tell for a tenth of it, and the search ends far away."""
    case = Case("logistic-regression", "uniform", "separable", features=9, rows=20_000, slots=20_000)
    plan = case.plan(5.0, 16)
    found = [compute_losses(case, build(case, plan, Drawn(seed), seed))[0] for seed in range(3)]
    assert np.median(found) < 12
