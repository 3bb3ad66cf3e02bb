"""The oracle: answers planned queries with noise, and is a method's only access to private rows.

It is built from a plan's queries. Subsamples depend neither on rows nor on answers. They are all drawn, and their
union gathered, before the first query; beyond a public bound on memory they are drawn and streamed one by one. The
oracle consumes a planned event *before* it answers, and cannot answer beyond the plan. An answer is a noised array
alone: no counts, norms, batch sizes or timings.
"""

from collections import deque

import numpy as np

from app.inference.conjugate import make_run_problem
from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64, RowModel
from app.inference.core.plan import MechanismPlan
from app.inference.core.query import Query
from app.inference.core.row_source import RowSource
from app.inference.private_zone.mechanisms import BadQuery, NoiseSource
from app.inference.private_zone.partition import Summation
from app.inference.private_zone.queries import find_kind
from app.inference.private_zone.rows import choose_rows
from app.privacy.events import AtomicEvent, PrivacyEvent, encode, flatten


class PlanExhausted(RuntimeError):
    """All planned queries have been asked; a further one is refused before any row is read."""


class ClippedGaussianOracle:
    """Answers clipped sums over Poisson subsamples with Gaussian noise on an integer grid."""

    __slots__ = (
        "__design",
        "__executed",
        "__model",
        "__noise",
        "__pending",
        "__rows",
    )

    def __init__(
        self,
        model: RowModel,
        plan: MechanismPlan,
        facts: DeclaredFacts,
        source: RowSource,
        *,
        noise: NoiseSource,
        sampling: np.random.Generator,
        summation: Summation | None = None,
    ) -> None:
        """Draw all subsamples and gather their rows, if they fit into memory.

        Args:
            model: of the plan.
            plan: gives the queries and their events.
            facts: of the table.
            source: the table.
            noise: perturbs sums.
            sampling: draws subsamples; no other code may use it.
            summation: computes the sums elsewhere; no rows are then gathered here.

        Raises:
            ValueError: if ``source`` does not have the declared slots or rows per unit.
            UnknownEvent: if the plan holds an event that this oracle cannot carry out.
        """
        if (source.slots, source.rows_per_slot) != (facts.slots, facts.rows_per_unit):
            raise ValueError("the table does not have the slots and rows per unit of the plan")
        self.__pending = deque(query for query in plan.queries for _ in range(query.count))
        self.__executed: list[tuple[AtomicEvent, int]] = []
        rates = [(event.sampling_rate, count) for event, count in flatten(plan.events)]
        self.__model, self.__noise = model, noise
        self.__design = make_run_problem(plan, facts).design
        self.__rows = choose_rows(model, self.__design, source, sampling, rates, summation=summation)

    @property
    def executed(self) -> tuple[PrivacyEvent, ...]:
        """The events of all queries so far, run-length encoded as in a plan."""
        return encode(self.__executed)

    def ask(self, query: Query) -> Array64:
        """Answer ``query`` by the noised sum over the next planned subsample.

        A query follows from earlier answers only, so its faults may be visible.

        Returns:
            The sum in real units, not scaled by 1/q.

        Raises:
            PlanExhausted: if all planned queries have been asked.
            BadQuery: for a query that is not the planned one, not finite, or not of the model's shape.
        """
        if not self.__pending:
            raise PlanExhausted("all planned queries have been asked")
        planned = self.__pending[0]
        if type(query) is not find_kind(planned.kind) or query.length != planned.length:
            raise BadQuery("the next planned query has another kind or length")
        query.check(self.__model, self.__design)
        self.__pending.popleft()
        self.__executed.append((planned.event, 1))
        noised = self.__noise.perturb(self.__rows.sum(query), query.scales(planned.event.noise_multiplier))
        return query.answer(noised)
