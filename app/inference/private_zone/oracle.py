"""The oracle: the only way from a method to private rows.

Built from a plan's own queries. Subsamples know neither rows nor answers: they are all drawn and their union gathered
before the first query, or, beyond a public bound on memory, drawn and streamed one by one. The oracle consumes a
planned event *before* it answers, and cannot answer beyond the plan. An answer is a noised array and nothing else: no
counts, norms, batch sizes or timings.
"""

from collections import deque

import numpy as np

from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64, Model
from app.inference.core.plan import MechanismPlan
from app.inference.core.problems import problem_for
from app.inference.core.query import Query
from app.inference.core.row_source import RowSource
from app.inference.private_zone.mechanisms import BadQuery, NoiseSource
from app.inference.private_zone.partition import Summation
from app.inference.private_zone.queries import kind
from app.inference.private_zone.rows import rows_for
from app.privacy.events import AtomicEvent, PrivacyEvent, encode, flatten


class PlanExhausted(RuntimeError):
    """A query beyond the plan: refused before any row is touched."""


class ClippedGaussianOracle:
    """Answers clipped sums over planned Poisson subsamples of units, with Gaussian noise on an integer grid."""

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
        model: Model,
        plan: MechanismPlan,
        facts: DeclaredFacts,
        source: RowSource,
        *,
        noise: NoiseSource,
        sampling: np.random.Generator,
        summation: Summation | None = None,
    ) -> None:
        """Draw all subsamples and gather the rows that they need, in one pass over ``source``, if they fit.

        With a ``summation``, which carries out the sums elsewhere, nothing is ever gathered here.

        Raises:
            ValueError: if ``source`` does not have the declared slots, or not the declared rows a unit.
            UnknownEvent: if the plan holds an event that this oracle cannot carry out.
        """
        if (source.slots, source.rows_per_slot) != (facts.slots, facts.rows_per_unit):
            raise ValueError("the table is not what the plan was made for")
        self.__pending = deque(query for query in plan.queries for _ in range(query.count))
        self.__executed: list[tuple[AtomicEvent, int]] = []
        rates = [(event.sampling_rate, count) for event, count in flatten(plan.events)]
        self.__model, self.__noise = model, noise
        self.__design = problem_for(plan.model, facts).design
        self.__rows = rows_for(model, self.__design, source, sampling, rates, summation=summation)

    @property
    def executed(self) -> tuple[PrivacyEvent, ...]:
        """The events of all queries so far, run-length encoded as in a plan."""
        return encode(self.__executed)

    def ask(self, query: Query) -> Array64:
        """The noised sum over the next planned subsample, in real units; not scaled by 1/q.

        What a query holds comes from earlier answers, so faults in it may show.

        Raises:
            PlanExhausted: beyond the plan.
            BadQuery: for a query that is not the planned one, or not finite, or not of the model's shape.
        """
        if not self.__pending:
            raise PlanExhausted("every planned query has been asked")
        planned = self.__pending[0]
        if type(query) is not kind(planned.kind) or query.length != planned.length:
            raise BadQuery("another kind or length of query is planned next")
        query.check(self.__model, self.__design)
        self.__pending.popleft()
        self.__executed.append((planned.event, 1))
        noised = self.__noise.perturb(self.__rows.sum(query), query.scales(planned.event.noise_multiplier))
        return query.answer(noised)
