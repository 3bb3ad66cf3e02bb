"""The oracle: the only way from a method to private rows.

Built from a plan's own queries. It draws every subsample and gathers their union before the first question; it
consumes a planned event *before* it answers, and cannot answer beyond the plan. An answer is a noised array and
nothing else: no counts, norms, batch sizes or timings.
"""

from collections import deque
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from app.inference.design import Design
from app.inference.mechanisms import BadQuestion, NoiseSource
from app.inference.partition import Summation, chunk_units
from app.inference.problems import model_for
from app.inference.protocol import (
    Array32,
    Array64,
    DeclaredFacts,
    Integers,
    MechanismPlan,
    Model,
    PlannedQuery,
    Question,
    RowSource,
)
from app.inference.questions import kind
from app.inference.sampling import Subsamples
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent, PrivacyEvent, encode, flatten, merge

GATHER_ROWS = 65_536
GATHER_VALUES = 1 << 20


class PlanExhausted(RuntimeError):
    """A question beyond the plan: refused before any row is touched."""


class ClippedGaussianOracle:
    """Answers clipped sums over planned Poisson subsamples of units, with Gaussian noise on an integer grid."""

    __slots__ = (
        "__design",
        "__executed",
        "__model",
        "__noise",
        "__pending",
        "__present",
        "__rows",
        "__rows_per_unit",
        "__samples",
        "__slots",
        "__summation",
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
        """Draw all subsamples, then gather the rows that they need in one pass over ``source``.

        With a ``summation``, which carries out the sums elsewhere, nothing is gathered here.

        Raises:
            ValueError: if ``source`` does not have the declared slots, or not the declared rows a unit.
            UnknownEvent: if the plan holds an event that this oracle cannot carry out.
        """
        if (source.slots, source.rows_per_slot) != (facts.slots, facts.rows_per_unit):
            raise ValueError("the table is not what the plan was made for")
        self.__pending = deque(plan.queries)
        self.__executed: list[tuple[AtomicEvent, int]] = []
        rates = [(_rate(event), count) for event, count in flatten(plan.events)]
        self.__samples = Subsamples(sampling, facts.slots, rates)
        self.__model, self.__noise, self.__rows_per_unit = model, noise, facts.rows_per_unit
        self.__design = model_for(plan.model, facts).design
        self.__slots, self.__summation = facts.slots, summation
        union = np.arange(0) if summation else self.__samples.union
        self.__rows, self.__present = _gather(model, self.__design, source, union)

    @property
    def executed(self) -> tuple[PrivacyEvent, ...]:
        """The events of all questions so far, run-length encoded as in a plan."""
        return encode(self.__executed)

    def ask(self, question: Question) -> Array64:
        """The noised sum over the next planned subsample, in real units; not scaled by 1/q.

        What a question holds comes from earlier answers, so faults in it may show.

        Raises:
            PlanExhausted: beyond the plan.
            BadQuestion: for a question that is not the planned one, or not finite, or not of the model's shape.
        """
        if not self.__pending:
            raise PlanExhausted("every planned question has been asked")
        planned = self.__pending[0]
        if type(question) is not kind(planned.kind) or question.length != planned.length:
            raise BadQuestion("another kind or length of question is planned next")
        question.check(self.__model, self.__design)
        self.__consume(planned)
        return question.answer(self.__noise.perturb(self.__sum(question), question.scales(_sigma(planned.event))))

    def __consume(self, planned: PlannedQuery) -> None:
        self.__pending.popleft()
        if planned.count > 1:
            self.__pending.appendleft(replace(planned, count=planned.count - 1))
        self.__executed = merge([*self.__executed, (planned.event, 1)])

    def __sum(self, question: Question) -> Integers:
        """The exact integer sum over the next subsample. Total in the rows."""
        if self.__summation is not None:
            slots = self.__samples.next_slots()
            return self.__summation(question, range(self.__slots) if slots is None else slots)
        positions = self.__samples.next()
        if positions is None:
            return question.sum(self.__model, self.__rows, self.__present, self.__rows_per_unit)
        chunk = chunk_units(self.__rows_per_unit)
        starts = range(0, max(len(positions), 1), chunk)
        parts = [self.__part(question, positions[start : start + chunk]) for start in starts]
        return np.asarray(np.sum(parts, axis=0))

    def __part(self, question: Question, positions: NDArray[np.integer]) -> Integers:
        """The sum over some units."""
        each = self.__rows_per_unit
        rows = self.__rows.reshape(-1, each * self.__rows.shape[1]).take(positions, axis=0)
        present = self.__present.reshape(-1, each).take(positions, axis=0)
        return question.sum(self.__model, rows.reshape(-1, self.__rows.shape[1]), present.ravel(), each)


def _sigma(event: AtomicEvent) -> float:
    return event.event.noise_multiplier if isinstance(event, PoissonSampledEvent) else event.noise_multiplier


def _rate(event: AtomicEvent) -> float:
    return 1.0 if isinstance(event, GaussianEvent) else event.sampling_rate


def _gather(
    model: Model, design: Design, source: RowSource, union: NDArray[np.integer]
) -> tuple[Array32, NDArray[np.bool_]]:
    """Folded rows ``(n, p)`` and their presence, in bounded extra memory."""
    each = source.rows_per_slot
    rows = np.empty((len(union) * each, model.row_width), dtype=np.float32)
    present = np.empty(len(union) * each, dtype=bool)
    size = max(1, min(GATHER_ROWS, GATHER_VALUES // model.row_width) // each)
    for start in range(0, len(union), size):
        chunk = slice(start * each, (start + size) * each)
        x, y, present[chunk] = design.encode(source.gather(union[start : start + size].astype(np.int64)))
        rows[chunk] = model.fold(x, y)
    return rows, present
