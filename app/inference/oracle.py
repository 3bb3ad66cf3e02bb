"""The oracle: the only way from a method to private rows.

Built from a plan's own events. It draws every subsample and gathers their union before the first question; it
consumes a planned event *before* it answers, and cannot answer beyond the plan. An answer is a noised array and
nothing else: no counts, norms, batch sizes or timings.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from app.inference.design import Design
from app.inference.mechanisms import GRID, BadQuestion, NoiseSource, admissible_clip, clip_to_grid, exact_sum
from app.inference.problems import model_for
from app.inference.protocol import Array32, Array64, DeclaredFacts, MechanismPlan, Model, RowSource
from app.inference.sampling import Subsamples
from app.privacy.events import AtomicEvent, GaussianEvent, PoissonSampledEvent, PrivacyEvent, encode, flatten

GATHER_ROWS = 65_536
GATHER_VALUES = 1 << 20
BLOCK = 512


class PlanExhausted(RuntimeError):
    """A question beyond the plan: refused before any row is touched."""


class ClippedGaussianOracle:
    """Answers clipped sums of potentials over planned Poisson subsamples, with Gaussian noise on an integer grid."""

    __slots__ = (
        "__answer_length",
        "__block",
        "__executed",
        "__integers",
        "__model",
        "__noise",
        "__pending",
        "__potentials",
        "__present",
        "__rows",
        "__samples",
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
    ) -> None:
        """Draw all subsamples, then gather the rows that they need in one pass over ``source``.

        Raises:
            ValueError: if ``source`` does not have the declared slots, or the unit is not the row.
            UnknownEvent: if the plan holds an event that this oracle cannot carry out.
        """
        if source.slots != facts.slots or facts.unit.get("kind") != "row":
            raise ValueError("the table is not what the plan was made for")
        self.__pending = deque(flatten(plan.events))
        self.__executed: list[tuple[AtomicEvent, int]] = []
        self.__samples = Subsamples(sampling, facts.slots, [(_rate(event), n) for event, n in self.__pending])
        self.__model, self.__noise, self.__answer_length = model, noise, plan.answer_length
        self.__rows, self.__present = _gather(model, model_for(plan.model, facts).design, source, self.__samples.union)
        self.__block = np.empty((BLOCK, self.__rows.shape[1]), dtype=np.float32)
        self.__potentials = np.empty((BLOCK, plan.answer_length), dtype=np.float32)
        self.__integers = np.empty((BLOCK, plan.answer_length))

    @property
    def executed(self) -> tuple[PrivacyEvent, ...]:
        """The events of all questions so far, run-length encoded as in a plan."""
        return encode(self.__executed)

    def clipped_potential_sum(self, draws: Array64, clip: float) -> Array64:
        """Noised ``sum_b clip_C(G(x_b))`` over this question's subsample, shape ``(S,)``; not scaled by 1/q.

        ``draws`` ``(S, p)`` are the parameters at which potentials are taken, S that of the plan; ``clip`` is C,
        raised to a public floor. Both come from earlier answers, so faults in them may show.

        Raises:
            PlanExhausted: beyond the plan.
            BadQuestion: for draws or a clip that are not finite or not of the planned shape.
        """
        if draws.shape != (self.__answer_length, self.__model.dimension) or not np.all(np.isfinite(draws)):
            raise BadQuestion("draws are finite and of the planned shape")
        clip = admissible_clip(clip)
        event = self.__consume()
        sigma = event.event.noise_multiplier if isinstance(event, PoissonSampledEvent) else event.noise_multiplier
        noised = self.__noise.perturb(self.__sum(draws.astype(np.float32), clip), sigma * GRID)
        return noised.astype(np.float64) * (clip / GRID)

    def __consume(self) -> AtomicEvent:
        if not self.__pending:
            raise PlanExhausted("every planned question has been asked")
        event, count = self.__pending.popleft()
        if count > 1:
            self.__pending.appendleft((event, count - 1))
        if self.__executed and self.__executed[-1][0] == event:
            event, done = self.__executed.pop()
            self.__executed.append((event, done + 1))
        else:
            self.__executed.append((event, 1))
        return event

    def __sum(self, draws: Array32, clip: float) -> NDArray[np.int64]:
        """The exact integer sum over the next subsample, in blocks that fit the cache. Total in the rows."""
        positions = self.__samples.next()
        count = len(self.__rows) if positions is None else len(positions)
        total = np.zeros(len(draws), dtype=np.int64)
        with np.errstate(all="ignore"):
            for start in range(0, count, BLOCK):
                block = slice(start, min(start + BLOCK, count))
                rows, present = self.__take(block if positions is None else positions[block])
                potentials, integers = self.__potentials[: len(rows)], self.__integers[: len(rows)]
                self.__model.log_likelihood(rows, draws, out=potentials)
                total += exact_sum(clip_to_grid(potentials, present, clip, out=integers))
        return total

    def __take(self, block: slice | NDArray[np.integer]) -> tuple[Array32, NDArray[np.bool_]]:
        if isinstance(block, slice):
            return self.__rows[block], self.__present[block]
        rows = np.take(self.__rows, block, axis=0, out=self.__block[: len(block)], mode="clip")
        return rows, self.__present[block]


def _rate(event: AtomicEvent) -> float:
    return 1.0 if isinstance(event, GaussianEvent) else event.sampling_rate


def _gather(
    model: Model, design: Design, source: RowSource, union: NDArray[np.integer]
) -> tuple[Array32, NDArray[np.bool_]]:
    """Folded rows ``(n, p)`` and their presence, in bounded extra memory."""
    rows = np.empty((len(union), model.row_width), dtype=np.float32)
    present = np.empty(len(union), dtype=bool)
    size = min(GATHER_ROWS, max(1, GATHER_VALUES // model.row_width))
    for start in range(0, len(union), size):
        chunk = slice(start, start + size)
        x, y, present[chunk] = design.encode(source.gather(union[chunk].astype(np.int64)))
        rows[chunk] = model.fold(x, y)
    return rows, present
