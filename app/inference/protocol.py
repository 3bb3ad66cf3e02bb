"""What a method, a model, an oracle and a plan are: the contracts of the pure core.

A method never meets a row. It asks its oracle planned questions and sees noised answers only;
``plan`` states the price beside the algorithm that it prices.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.inference.knobs import Knob
from app.inference.likelihoods import Array32 as Array32
from app.inference.likelihoods import Array64 as Array64
from app.inference.likelihoods import Expansion as Expansion
from app.inference.likelihoods import Model as Model
from app.privacy.events import AtomicEvent, NonPrivateEvent, PrivacyEvent, encode

if TYPE_CHECKING:
    from app.inference.design import Design

Integers = NDArray[np.int64]

PRESENT: Final = "_present"
"""Says beside the declared columns whether a row is there; no declared column can have this name."""


@dataclass(frozen=True, slots=True)
class Column:
    """A declared column. Bounds and categories are the owner's word, never inferred."""

    name: str
    type: Literal["integer", "real", "categorical", "binary"]
    lower: float | None = None
    upper: float | None = None
    categories: tuple[str, ...] = ()
    impute: float | str | bool | None = None

    @property
    def discrete(self) -> bool:
        """Whether values are labels, not numbers."""
        return self.type in {"binary", "categorical"}

    @property
    def constant(self) -> bool:
        """Whether its bounds coincide: whatever a row holds, its coordinate is 0."""
        return self.lower is not None and self.lower == self.upper


@dataclass(frozen=True, slots=True)
class DeclaredFacts:
    """All that planning may know of a table: public by declaration."""

    columns: tuple[Column, ...]
    slots: int
    unit: Mapping[str, Any]  # {"kind": "row"} or {"kind": "column", ...}
    sensitivity: Literal["private", "public"]
    delta: float | None = None

    @property
    def rows_per_unit(self) -> int:
        """Rows that one privacy unit can contribute."""
        return int(self.unit["max_rows"]) if self.unit["kind"] == "column" else 1


@dataclass(frozen=True, slots=True)
class PriorSpec:
    """A normal prior, centred on zero, with a scale per coefficient; see :mod:`app.inference.priors`.

    ``scales`` override ``scale`` by the name of a design column, a feature or a parameter. With
    ``degrees_of_freedom`` the scales share one unknown factor.
    """

    scale: float = 1.0
    scales: Mapping[str, float] = field(default_factory=dict)
    degrees_of_freedom: float | None = None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """``noise_scale`` is that of models with a known one, in the target's own units."""

    family: str
    features: tuple[str, ...]
    target: str | None
    prior: PriorSpec = PriorSpec()
    noise_scale: float | None = None


@dataclass(frozen=True, slots=True)
class Mechanism:
    """The knobs of a subsampled Gaussian mechanism, all fixed before the first row is read."""

    noise_multiplier: float
    sampling_rate: float
    iterations: int


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What an analyst asks for. A private method needs ``mechanism`` or ``noise_multiplier``.

    ``mechanism`` is the caller's own; ``noise_multiplier`` comes from calibration to a target epsilon, and the
    method then chooses sampling rate and iterations (or takes them from ``parameters``).
    """

    method: str
    size: int
    model: ModelSpec
    parameters: Mapping[str, Any] = field(default_factory=dict)
    mechanism: Mechanism | None = None
    noise_multiplier: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One kind of question, asked ``count`` times in a row.

    ``length`` is the number of values in an answer; a symmetric D x D matrix counts D**2.
    """

    kind: str
    length: int
    event: AtomicEvent
    count: int = 1


@dataclass(frozen=True, slots=True)
class MechanismPlan:
    """A run, decided beforehand: what is sampled, how it is clipped and noised, and its price.

    A method with several noises states the one-shot equivalent of them in ``mechanism``, and the number of queries.
    """

    method: str
    size: int
    model: ModelSpec
    parameters: Mapping[str, Any]
    mechanism: Mechanism | None  # None for methods without a mechanism (public data only)
    clipping: str  # the rule in words, for the certificate
    grid_bits: int  # K = 2**grid_bits
    queries: tuple[PlannedQuery, ...]  # in order; none for methods that read the rows themselves
    steps: int  # planned steps, for progress
    warnings: tuple[str, ...] = field(default=())

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """What is priced: the queries' events in order, run-length encoded; without queries, no private event."""
        if not self.queries:
            return (NonPrivateEvent(),)
        return encode((query.event, query.count) for query in self.queries)

    @property
    def answer_length(self) -> int:
        """The largest length of an answer."""
        return max((query.length for query in self.queries), default=0)


@dataclass(frozen=True, slots=True)
class DesignColumn:
    """How one design column comes from the declared table (the public ``design`` of a release)."""

    name: str
    source: str | None
    transform: Mapping[str, Any]  # {"kind": "affine"|"indicator"|"constant", ...}


@dataclass(frozen=True, slots=True)
class Posterior:
    """A normal posterior of the D parameters ``names``, in the design's coordinates.

    ``covariance`` is ``(D, D)``, or ``(D,)`` where it is diagonal.
    """

    names: tuple[str, ...]
    mean: Array64  # (D,)
    covariance: Array64


@dataclass(frozen=True, slots=True)
class Pseudocoreset:
    """What leaves: points in the design's coordinates, targets in their own units, weights.

    ``posterior`` is that of a method which finds one beside the points.
    """

    u: Array64  # (M, p), intercept included, columns as in ``design``
    y: Array64 | None  # (M,)
    weight: Array64  # (M,), non-negative
    design: tuple[DesignColumn, ...]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    posterior: Posterior | None = None


class Question(Protocol):
    """A sum over units, each clipped and rounded to a grid of ``K`` steps: those of :mod:`app.inference.questions`.

    A question is frozen: arrays and bounds that follow from earlier answers.
    """

    kind: ClassVar[str]

    @property
    def length(self) -> int:
        """As :attr:`PlannedQuery.length`."""

    def check(self, model: "Model", design: "Design") -> None:
        """Raise :class:`~app.inference.mechanisms.BadQuestion` for what is not finite or not of the model's shape."""

    def sum(self, model: "Model", rows: Array32, present: NDArray[np.bool_], rows_per_unit: int) -> Integers:
        """The exact sum of one block of units, on the grid, in one dimension.

        ``rows`` ``(n * rows_per_unit, row_width)`` are unit-major, ``present`` has one entry each. Total in both: it
        neither raises nor warns, a faulty unit contributes zero, and so does an absent one. Replacing one unit by an
        absent one moves the noised answer's mean by at most K, in units of the scales (:meth:`scales` at sigma 1 / K).
        """

    def scales(self, sigma: float) -> float | Array64:
        """Standard deviations of the noise in steps of the grid, one for all or one for each value of :meth:`sum`."""

    def answer(self, noised: Integers) -> Array64:
        """The noised sum in real units."""


class Oracle(Protocol):
    """The only way to private rows: noised answers to planned questions, nothing else."""

    def ask(self, question: Question) -> Array64:
        """The noised sum over the next planned subsample, in real units; not scaled by 1/q.

        Raises:
            PlanExhausted: beyond the plan.
            BadQuestion: for a question that is not the planned one, or is none.
        """


class RowSource(Protocol):
    """Implemented by the enclave (encrypted storage) and by generators in tests and benchmarks."""

    slots: int
    """Units that there is room for."""

    rows_per_slot: int
    """Rows of a unit: fewer are padded with null rows."""

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """The declared columns of the units at sorted, unique ``indices``, plus :data:`PRESENT` (uint8).

        Each is an array of ``len(indices) * rows_per_slot`` values, all rows of a unit next to each other.
        real, integer: float64, clamped; binary: float64 0/1; categorical: integer code in declared order.
        A null row is not present, and zero everywhere.
        """


class Method(Protocol):
    """Plans a run and states its price. ``private`` methods never receive rows."""

    id: str
    description: str
    private: bool

    @property
    def parameters(self) -> tuple[Knob, ...]:
        """The knobs, each with its public range."""

    def plan(self, request: PlanRequest, facts: DeclaredFacts) -> MechanismPlan:
        """The whole run, from declared facts alone; the same request gives the same plan.

        Raises:
            InvalidRequest: pointing at the member of the request that is at fault.
            MethodNotAllowedOnPrivateData: for a method without privacy on a private table.
        """


State = TypeVar("State")


class PrivateMethod(Method, Protocol[State]):
    """A method that learns from noised answers only: pure steps on a named state."""

    def shorten(self, plan: MechanismPlan, facts: DeclaredFacts) -> MechanismPlan:
        """A plan that asks every kind of question of ``plan``, as few times as it can, for a dry run."""

    def init(self, plan: MechanismPlan, facts: DeclaredFacts, rng: np.random.Generator) -> State:
        """The start, from the model and declared facts alone."""

    def step(self, rng: np.random.Generator, state: State, oracle: Oracle) -> State:
        """One planned question and what follows from its answer."""

    def finish(self, state: State) -> Pseudocoreset:
        """What is released."""


class PublicMethod(Method, Protocol):
    """A method that reads rows, for tables that are public already."""

    def build(
        self, plan: MechanismPlan, facts: DeclaredFacts, rows: RowSource, rng: np.random.Generator
    ) -> Pseudocoreset:
        """What is released."""
