"""A subject for every kind of query: a worst-case canary, whose contribution has the clipping norm.

The clipping norm is small, or the canary far from other rows, so the contribution would be longer without clipping. A
new kind of query, of terms, or of conjugate model needs a subject here; a test compares the kinds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.inference.audit.tables import CanaryTable, Row, make_facts
from app.inference.conjugate import make_conjugate_problem, make_run_problem
from app.inference.core.designs import Fourier, Interaction, Network, Polynomial, Spline
from app.inference.core.designs.network import Layer
from app.inference.core.facts import Column
from app.inference.core.grouping import GROUP_KINDS
from app.inference.core.model import Array64
from app.inference.core.plan import GROUPS, MechanismPlan, ModelSpec, PlannedQuery
from app.inference.core.problems import make_problem
from app.inference.core.query import Query
from app.inference.core.statistics import compute_units
from app.inference.private_zone import queries
from app.inference.private_zone.mechanisms import GRID_BITS
from app.inference.private_zone.partition import fold
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent

COLUMNS: Final = (
    Column("a", "real", -1, 1),
    Column("b", "real", -1, 1),
    Column("flag", "binary"),
    Column("amount", "real", -1, 1),
    Column("visits", "integer", 0, 60),
    Column("word", "categorical", categories=("fever", "cough", "fall")),
    Column("late", "binary"),
)
PLACE: Final = 5
"""The canary's slot; it is not the first one."""

_FEATURES: Final = ("a", "b")
_WIDTH: Final = 3
_SCALE: Final = 0.01
"""Scale of coordinates: they are so large that contributions are clipped."""
_LOGISTIC: Final = ModelSpec("logistic-regression", _FEATURES, "flag")
_LINEAR: Final = ModelSpec("linear-regression", _FEATURES, "amount", noise_scale=0.1)
_TAILED: Final = ModelSpec("student-t-regression", _FEATURES, "amount", noise_scale=0.1)
_GAUSSIAN: Final = ModelSpec("gaussian", _FEATURES, None)
_WORDS: Final = ModelSpec("latent-dirichlet-allocation", ("word",), None, topics=2)
_POISSON: Final = ModelSpec("poisson-regression", _FEATURES, "visits")
_BITS: Final = ModelSpec("sigmoid-belief-network", ("flag", "late"), None, hidden_units=2)
_TERMS: Final = ModelSpec(
    "logistic-regression",
    (
        "a",
        Interaction(("a", "word")),
        Polynomial("b", 3),
        Spline("visits", 4, (30.0,)),
        Fourier(("a", "b"), 4, 0.5, 3),
        Network(("a", "b"), (Layer(((1.0, -1.0), (0.5, 0.5)), (0.1, 0.0), "tanh"),)),
    ),
    "flag",
)
"""A design with every kind of term."""
_CANARY: Final = {"a": 1.0, "b": -1.0, "flag": 1.0, "amount": 1.0, "visits": 60.0, "word": 1.0, "late": 1.0}
_CENTRAL: Final = _CANARY | {"a": 0.5, "b": -0.5}
"""A canary so near to the centre of the bounds that a beta-score of labels is not damped."""
_AWAY: Final = np.array([-4.0, 4.0, -4.0])
"""A parameter at which the canary's target is far from its prediction."""
_NEAR: Final = np.array([0.31, -0.31, 0.31])
"""A parameter whose residual is small, where a beta-score is longest."""
_GROUPED_BY: Final = ("word",)
_DRAWS: Final = np.array([[9.0, -7.0, 3.0], [-8.0, 9.0, 1.0], [2.0, 6.0, -9.0], [1.0, -5.0, 8.0]])

_LIKELIHOODS: Final = np.array([[1.0, 0.2, 1.0], [0.1, 1.0, 1e-8]])
"""Likelihoods of three words under two topics."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A query and a canary.

    ``clip`` is the largest norm of a contribution, in units of the answer. ``grouped``: a column must name the unit.
    """

    name: str
    spec: ModelSpec
    query: Query
    clip: float
    canary: Row
    columns: tuple[Column, ...] = COLUMNS
    grouped: bool = False

    def make_table(self, slots: int, rows_per_unit: int, *, present: bool) -> CanaryTable:
        """Make the table with the canary or without it. All its rows are equal."""
        facts = make_facts(self.columns, slots, rows_per_unit, grouped=self.grouped)
        return CanaryTable(facts, PLACE, [self.canary] * rows_per_unit if present else [])

    def make_plan(self, noise: float, rate: float, count: int) -> MechanismPlan:
        """Plan the query ``count`` times, with this noise multiplier and sampling rate."""
        event = GaussianEvent(noise)
        planned: AtomicEvent = event if rate == 1 else PoissonSampledEvent(rate, event)
        return make_plan(self.spec, self.query, planned, count)

    def compute_contribution(self, rows_per_unit: int) -> Array64:
        """Compute the canary's contribution without noise, in units of the answer, as one vector.

        Euclidean products of it with answers have noise of one scale in every direction. That holds for symmetric
        matrices too, because both triangles count.
        """
        return compute_contribution(self.spec, self.query, self.make_table(PLACE + 1, rows_per_unit, present=True))


def make_plan(spec: ModelSpec, query: Query, event: AtomicEvent, count: int) -> MechanismPlan:
    """Plan ``query`` alone, ``count`` times."""
    planned = PlannedQuery(query.kind, query.length, event, count)
    grouped = {GROUPS: _GROUPED_BY} if query.kind in GROUP_KINDS else {}
    return MechanismPlan("audit", 1, spec, grouped, None, "", GRID_BITS, (planned,), count)


def compute_contribution(spec: ModelSpec, query: Query, table: CanaryTable) -> Array64:
    """Compute the canary's part of the exact answer to ``query``, as one vector."""
    return _sum_units(spec, query, table, np.array([table.place]))


def compute_sum(spec: ModelSpec, query: Query, table: CanaryTable) -> Array64:
    """Compute the exact answer to ``query`` on a simulated table, as one vector."""
    return _sum_units(spec, query, table, np.arange(table.slots))


def _sum_units(spec: ModelSpec, query: Query, table: CanaryTable, units: NDArray[np.int64]) -> Array64:
    problem = make_run_problem(make_plan(spec, query, GaussianEvent(1.0), 1), table.facts)
    rows, present = fold(problem.model, problem.design, table, units)
    return read_answer(query, query.answer(query.sum(problem.model, rows, present, table.rows_per_slot)))


def read_answer(query: Query, answer: Array64) -> Array64:
    """Read an answer as one vector whose noise has one scale in every direction."""
    return np.asarray(answer / query.units if isinstance(query, queries.StatisticSum) else answer).ravel()


def list_subjects() -> tuple[Subject, ...]:
    """List a subject for every kind of query, and for its variants."""
    large, pairs = 50.0 * np.eye(_WIDTH), np.concatenate([_DRAWS, -_DRAWS])
    deviation, theta = np.full(_WIDTH - 1, 0.01), np.zeros(_WIDTH)
    excess = {"cut": 1.0, "scale": 1.0, "centre": 0.0, "spread": 1.0}
    made: tuple[tuple[str, ModelSpec, Query, float], ...] = (
        ("potential_sum", _LOGISTIC, queries.PotentialSum(_DRAWS, 0.5), 0.5),
        ("potential_sum, pairs", _LOGISTIC, queries.PotentialSum(pairs, 0.5, antithetic=True), 0.5),
        ("robust_potential_sum", _LOGISTIC, queries.RobustPotentialSum(_DRAWS, 0.5, beta=0.3), 0.5),
        (
            "robust_potential_sum, pairs",
            _LOGISTIC,
            queries.RobustPotentialSum(pairs, 0.5, antithetic=True, beta=0.3),
            0.5,
        ),
        ("robust_information_sum", _LOGISTIC, queries.RobustInformationSum(theta, large, 3.0, beta=0.3), 3.0),
        ("robust_score_sum, linear", _LINEAR, queries.RobustScoreSum(_NEAR, large, 2.0, beta=0.001), 2.0),
        ("bounded_score_sum", _LOGISTIC, queries.BoundedScoreSum(_AWAY, large, 2.0), 2.0),
        ("bounded_score_sum, linear", _LINEAR, queries.BoundedScoreSum(_AWAY, large, 2.0), 2.0),
        ("clipped_score_sum", _LOGISTIC, queries.ClippedScoreSum(_AWAY, large, 2.0), 2.0),
        ("cut_score_sum", _LINEAR, queries.CutScoreSum(_AWAY, large, 2.0, 1.5), 2.0),
        ("cut_score_sum, counts", _POISSON, queries.CutScoreSum(_AWAY, large, 2.0, 1.5), 2.0),
        ("cut_score_sum, wide", _TAILED, queries.CutScoreSum(_AWAY, large, 2.0, 50.0), 2.0),
        ("information_sum", _LOGISTIC, queries.InformationSum(theta, large, 3.0), 3.0),
        ("moment_sum", _LOGISTIC, queries.MomentSum(_SCALE, _WIDTH, intercept=True, clip=2.0, weight=1.5), 2.0),
        ("mean_sum", _LOGISTIC, queries.MeanSum(_SCALE, _WIDTH, intercept=True, clip=2.0), 2.0),
        ("tail_sum", _LOGISTIC, queries.TailSum(_SCALE, _WIDTH, intercept=True, deviation=deviation, clip=1.0), 1.0),
        (
            "length_histogram",
            _LOGISTIC,
            queries.LengthHistogram(_SCALE, _WIDTH, intercept=True, largest=9, squares=True),
            1,
        ),
        ("residual_histogram", _LINEAR, queries.ResidualHistogram(_AWAY), 1.0),
        ("excess_sum", _LINEAR, queries.ExcessSum(_AWAY, **excess, squares=0.3, clip=2.0), 2.0),
        ("group_potential_sum", _LOGISTIC, queries.GroupPotentialSum(_DRAWS, 0.5, 3), 0.5),
        ("excess_sum, counts", _POISSON, queries.ExcessSum(_AWAY, **excess, squares=0.0, clip=2.0), 2.0),
    )
    made += tuple(
        (f"statistic_sum, {name}", spec, _sum_statistics(spec, moving=moving), 1.0)
        for name, spec, moving in (
            ("logistic", _LOGISTIC, False),
            ("logistic, moving", _LOGISTIC, True),
            ("linear", _LINEAR, False),
            ("gaussian", _GAUSSIAN, False),
            ("bits", _BITS, False),
            ("bits, moving", _BITS, True),
        )
    )
    made += tuple((f"{query.kind}, terms", _TERMS, query, clip) for query, clip in _list_queries_of_terms())
    labels = queries.RobustScoreSum(theta, large, 2.0, beta=0.001)
    return (
        *(Subject(*each, _CANARY) for each in made),
        Subject("robust_score_sum", _LOGISTIC, labels, 2.0, _CENTRAL),
        Subject("topic_sum", _WORDS, queries.TopicSum(_LIKELIHOODS, 0.5), 0.5, _CANARY, grouped=True),
    )


def _list_queries_of_terms() -> Iterator[tuple[Query, float]]:
    """List queries about the design with terms, with their clipping norms."""
    width = make_problem(_TERMS, make_facts(COLUMNS, 1, 1)).design.width
    theta, large = np.zeros(width), 50.0 * np.eye(width)
    draws = 9.0 * np.cos(np.outer(np.arange(1, 5), np.arange(1, width + 1)))
    yield queries.PotentialSum(draws, 0.5), 0.5
    yield queries.ClippedScoreSum(theta, large, 2.0), 2.0
    yield queries.BoundedScoreSum(theta, large, 2.0), 2.0
    yield queries.MomentSum(_SCALE, width, intercept=True, clip=2.0), 2.0


def _sum_statistics(spec: ModelSpec, *, moving: bool) -> queries.StatisticSum:
    """Sum statistics in units so small that contributions are clipped."""
    model = make_conjugate_problem(spec, make_facts(COLUMNS, 1, 1)).model
    units = 0.1 * compute_units(model.list_blocks(model.largest_radius, moving=moving), 1)
    return queries.StatisticSum(np.zeros(model.belief_shape), units, model.largest_radius, moving)
