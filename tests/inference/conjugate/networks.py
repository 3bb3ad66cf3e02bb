"""A small sigmoid belief network, its tables and its queries."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from app.inference.conjugate import make_conjugate_problem
from app.inference.conjugate.belief_network import SigmoidBelief
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.model import Array32, Array64
from app.inference.core.plan import ModelSpec
from app.inference.core.statistics import compute_units
from app.inference.private_zone.queries import StatisticSum
from support.table import Table

VISIBLE, UNITS, ROWS = 8, 3, 1500
NAMES = tuple(f"bit {index}" for index in range(VISIBLE))
FACTS = DeclaredFacts(
    (*(Column(name, "binary") for name in NAMES), Column("age", "real", 0, 1)), ROWS, {"kind": "row"}, "private", 1e-6
)
SPEC = ModelSpec("sigmoid-belief-network", NAMES, None, hidden_units=UNITS)


def make_model() -> SigmoidBelief:
    found = make_conjugate_problem(SPEC, FACTS).model
    assert isinstance(found, SigmoidBelief)
    return found


def draw_bits(rng: np.random.Generator, rows: int) -> NDArray[np.int64]:
    """Draw from a network of three units, which turn on different columns."""
    weights = np.zeros((VISIBLE, UNITS))
    weights[[0, 1, 2, 3, 4, 5, 6, 7], [0, 0, 0, 1, 1, 1, 2, 2]] = 4.0
    hidden = rng.random((rows, UNITS)) < 0.4
    return np.asarray(rng.random((rows, VISIBLE)) < expit(hidden @ weights.T - 2), dtype=np.int64)


def make_table(bits: NDArray[np.int64], present: NDArray[np.bool_]) -> Table:
    columns: dict[str, NDArray[Any]] = {name: bits[:, place] * 1.0 * present for place, name in enumerate(NAMES)}
    return Table(columns | {"age": np.zeros(len(bits)), "_present": present.astype(np.uint8)})


def draw_belief(rng: np.random.Generator, spread: float) -> Array64:
    return spread * rng.standard_normal(make_model().belief_shape)


def fold(bits: NDArray[np.int64]) -> Array32:
    return np.column_stack((bits, np.ones(len(bits)))).astype(np.float32)


def make_queries(belief: Array64, each: int = 1) -> list[StatisticSum]:
    found = []
    for moving in (False, True):
        blocks = make_model().list_blocks(1.0, moving=moving)
        found.append(StatisticSum(belief, compute_units(blocks, each), 1.0, moving))
    return found
