"""The states of a run: before its first round, in its rounds, and at its end."""

import math
from dataclasses import dataclass

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.fit import Fitted
from app.inference.methods.surrogate.excess import Excess, ResidualCounts
from app.inference.methods.surrogate.information import Answers
from app.inference.methods.surrogate.moments import CLIP_LENGTHS, Declared, Moments, Population
from app.inference.methods.surrogate.regression import Mode, Score
from app.inference.methods.surrogate.rows import Rows
from app.inference.methods.surrogate.schedule import Schedule
from app.inference.methods.surrogate.tuning import TUNING


@dataclass(frozen=True, slots=True)
class Setup:
    """The constants of a run, all from the request and declared facts.

    ``declared`` are facts about design columns. ``size`` is the number of points, ``within_bounds`` whether they
    stay within declared bounds. ``labels``: the target is binary.
    """

    model: Model
    design: Design
    prior: Prior
    declared: Declared
    schedule: Schedule
    size: int
    rows_per_unit: int
    within_bounds: bool
    labels: bool

    @property
    def places(self) -> int:
        """The largest possible number of rows."""
        return self.schedule.slots * self.rows_per_unit

    @property
    def features(self) -> int:
        """The number of design columns without the intercept."""
        return self.design.width - int(self.design.intercept)


@dataclass(frozen=True, slots=True)
class Opening:
    """The state before the first round.

    ``done`` is the number of answered queries. ``scale``, ``clip`` and ``centre`` are the parameters of the next sum of
    moments: units of columns, clipping norm in these units, and origin of columns. ``units`` is the number of privacy
    units with rows; it is infinite until a histogram counts them, and if each has one row. ``moments`` and
    ``population`` follow from the sum of moments.
    """

    setup: Setup
    done: int = 0
    scale: float = 1.0
    clip: float = 1.0
    centre: Array64 | float = 0.0
    units: float = math.inf
    moments: Moments | None = None
    population: Population | None = None

    @property
    def weight(self) -> float:
        """The weight of a row in the count: a root mean square length, or 1 if units have several rows.

        So noise in the count does not depend on the number of columns.
        """
        return self.clip / CLIP_LENGTHS if self.setup.rows_per_unit == 1 else 1.0


@dataclass(frozen=True, slots=True)
class Search:
    """The state in the rounds.

    ``done`` is the number of answered queries. ``theta`` ``(D,)`` is the current parameter, after a last ``step``
    ``(D,)``. ``information`` ``(D, D)`` is the belief's information at ``theta``, with the prior's precision.
    ``answers`` are the answered matrices. ``vague`` is the relative variance of the information; before any matrix,
    that of unknown correlations. ``counted`` is the noised number of rows, from the sum of moments, and ``count_noise``
    the standard deviation of its noise. The next ``mode`` is estimated from ``scores``. Residuals without a natural
    bound are cut at ``cut`` deviations; ``residuals`` and ``excess`` are the answers about them.
    """

    setup: Setup
    done: int
    rows: Rows
    theta: Array64
    information: Array64
    answers: Answers
    counted: float
    count_noise: float
    vague: float = TUNING.correlations
    scores: tuple[Score, ...] = ()
    mode: Mode | None = None
    step: Array64 | None = None
    residuals: ResidualCounts | None = None
    cut: float | None = None
    excess: Excess | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The state at the end: the last search, and points for its belief."""

    search: Search
    points: Fitted


State = Opening | Search | Result
