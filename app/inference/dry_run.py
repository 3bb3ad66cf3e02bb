"""Dry runs: a shortened plan is carried out on null rows, through the oracle of real runs.

A query's shape depends on the request and the declaration, not on rows. So a failure here would occur on every table,
and it is found before the charge. The noise is real; the answers are discarded.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.inference.conjugate import make_run_problem
from app.inference.core.capabilities import Capability
from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import make_problem
from app.inference.core.row_source import PRESENT
from app.inference.private_zone.mechanisms import DiscreteGaussian
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.private_zone.rng import make_monte_carlo_generator, make_sampling_generator
from app.inference.registry import find_private_method

SLOTS: Final = 2
ROWS_PER_UNIT: Final = 2
"""Null rows of a unit at most; shapes depend on whether there is one row or several."""
MOST_VALUES: Final = 10_000
"""Largest number of values of an answer whose noise takes at most about 0.1 s."""
LARGE: Final = 32
"""Largest number of parameters of which a dry run takes at most about 0.05 s; an answer may have its square."""


class NullRows:
    """A table of ``facts.slots`` units whose rows are all null."""

    def __init__(self, facts: DeclaredFacts) -> None:
        self.slots, self.rows_per_slot = facts.slots, facts.rows_per_unit
        self._columns: tuple[Column, ...] = facts.columns

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """Return zeros that are not present, as :meth:`app.inference.core.row_source.RowSource.gather`."""
        rows = len(indices) * self.rows_per_slot
        types = {column.name: np.uint16 if column.type == "categorical" else np.float64 for column in self._columns}
        values: dict[str, NDArray[Any]] = {name: np.zeros(rows, dtype=kind) for name, kind in types.items()}
        return values | {PRESENT: np.zeros(rows, dtype=np.uint8)}


def carry_out(plan: MechanismPlan, facts: DeclaredFacts, *, to_the_end: bool) -> None:
    """Initialise ``plan``, then carry out its shortened form.

    Args:
        plan: of a private method.
        facts: that it was planned for.
        to_the_end: whether to take the last step of several, which fits the points and may take seconds, and to
            release them.

    Raises:
        Exception: any error of a plan that cannot be carried out on any table.
    """
    method, rng = find_private_method(plan.method), make_monte_carlo_generator()
    method.init(plan, facts, rng)
    short = method.shorten(plan, facts)
    few = _reduce_rows(facts)
    oracle = ClippedGaussianOracle(
        make_run_problem(plan, few).model,
        short,
        few,
        NullRows(few),
        noise=DiscreteGaussian(),
        sampling=make_sampling_generator(),
    )
    state = method.init(short, facts, rng)
    for _ in range(short.steps if to_the_end else max(short.steps - 1, 1)):
        state = method.step(rng, state, oracle)
    if to_the_end:
        method.finish(state)


def is_large(plan: MechanismPlan, facts: DeclaredFacts) -> bool:
    """Whether a dry run takes too long for a price request."""
    if Capability.STATISTICS in find_private_method(plan.method).needs:
        return plan.answer_length > LARGE**2
    if plan.answer_length > MOST_VALUES:
        return True
    return make_problem(plan.model, facts).model.dimension > LARGE


def _reduce_rows(facts: DeclaredFacts) -> DeclaredFacts:
    unit = dict(facts.unit)
    if unit["kind"] == "column":
        unit["max_rows"] = min(facts.rows_per_unit, ROWS_PER_UNIT)
    return replace(facts, slots=min(facts.slots, SLOTS), unit=unit)
