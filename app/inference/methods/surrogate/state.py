"""A surrogate on its way: what is known of the rows, of the mode, and of the information there."""

from dataclasses import dataclass

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.priors import Prior
from app.inference.fitting.fit import Fitted
from app.inference.methods.surrogate.bearing import Bearing
from app.inference.methods.surrogate.columns import Columns
from app.inference.methods.surrogate.curvature import Curvature
from app.inference.methods.surrogate.declared import Declared
from app.inference.methods.surrogate.memory import Memory
from app.inference.methods.surrogate.moments import Moments
from app.inference.methods.surrogate.population import Lengths, Population
from app.inference.methods.surrogate.schedule import Schedule
from app.inference.methods.surrogate.scores import Mode, Score
from app.inference.methods.surrogate.winsorised import Winsorised


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays fixed through a run.

    ``known`` is what is declared of the design's columns. ``curvature`` is that of models whose information follows
    from one linear predictor; ``bends``: whether it changes along it, so that a step may be too long to be believed.
    """

    model: Model
    design: Design
    prior: Prior
    known: Declared
    size: int
    within_bounds: bool
    schedule: Schedule
    curvature: Curvature | None
    bends: bool
    rows_per_unit: int = 1

    @property
    def columnwise(self) -> bool:
        """As the schedule says: information is asked for single columns only."""
        return self.schedule.columnwise

    @property
    def places(self) -> int:
        """Rows that there is room for."""
        return self.schedule.slots * self.rows_per_unit


@dataclass(frozen=True, slots=True)
class State:
    """``theta`` ``(D,)`` where to ask next, ``information`` ``(D, D)`` there (prior included) as far as it is known.

    ``done`` counts queries; ``scale``, ``clip`` and ``centre`` are those of the moments; ``step`` is the last move
    ``(D,)``; ``rows`` is their number as the moments counted them; ``memory`` is that of information matrices that are
    averaged. ``lengths`` are those of rows, around their means once these were asked for; ``bearing`` is what scores at
    zero say, where rows seem isotropic. ``population_information`` ``(D, D)`` is what the population says of the
    information at the last parameter, prior included; None before the end, or where it is no information. ``moments``
    and ``winsorised`` are what was answered of columns, None before, or where it is not asked for.
    """

    setup: Setup
    done: int
    scale: float
    clip: float
    population: Population
    theta: Array64
    information: Array64
    step: Array64
    scores: tuple[Score, ...] = ()
    mode: Mode | None = None
    surprise: float = 0.0
    fitted: Fitted | None = None
    rows: float = 0.0
    columns: Columns | None = None
    memory: Memory | None = None
    lengths: Lengths | None = None
    bearing: Bearing | None = None
    centre: Array64 | float = 0.0
    population_information: Array64 | None = None
    moments: Moments | None = None
    winsorised: Winsorised | None = None
