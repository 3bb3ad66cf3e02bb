"""What a run knows: before its first round, in its rounds, and at its end."""

from dataclasses import dataclass, field

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.fit import Fitted
from app.inference.methods.one_belief.excess import Excess, Residuals
from app.inference.methods.one_belief.information import Filter
from app.inference.methods.one_belief.regression import Mode, Score
from app.inference.methods.one_belief.rows import Rows
from app.inference.methods.one_belief.schedule import Schedule
from app.inference.methods.surrogate.declared import Declared
from app.inference.methods.surrogate.moments import Moments
from app.inference.methods.surrogate.population import Lengths, Population


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays fixed through a run. ``known`` is what is declared of the design's columns."""

    model: Model
    design: Design
    prior: Prior
    known: Declared
    schedule: Schedule
    size: int
    rows_per_unit: int
    within_bounds: bool
    labels: bool
    one_predictor: bool

    @property
    def squares(self) -> bool:
        """Whether residuals' squares have a parameter."""
        return bool(getattr(self.model, "squares", False))

    @property
    def places(self) -> int:
        """Rows that there is room for."""
        return self.schedule.slots * self.rows_per_unit

    @property
    def features(self) -> int:
        """Design columns without the intercept."""
        return self.design.width - int(self.design.intercept)


@dataclass(frozen=True, slots=True)
class Opening:
    """The first answers. ``scale``, ``clip`` and ``centre`` are those of the next sum of moments."""

    setup: Setup
    done: int = 0
    scale: float = 1.0
    clip: float = 1.0
    centre: Array64 | float = 0.0
    lengths: Lengths | None = None
    moments: Moments | None = None
    population: Population | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """The rounds. Rows were ``counted`` with ``count_noise``.

    The believed ``information`` ``(D, D)``, the prior's included, is at ``theta`` ``(D,)``, after a last ``step``
    ``(D,)``.
    """

    setup: Setup
    done: int
    rows: Rows
    theta: Array64
    information: Array64
    counted: float
    count_noise: float
    filter: Filter = field(default_factory=Filter)
    scores: tuple[Score, ...] = ()
    mode: Mode | None = None
    step: Array64 | None = None
    residuals: Residuals | None = None
    cut: float | None = None
    excess: Excess | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The end: the last search, and points for what it believes."""

    search: Search
    points: Fitted


State = Opening | Search | Result
