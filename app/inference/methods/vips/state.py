"""The state of a run of ``vips``."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.inference.core.facts import DeclaredFacts
from app.inference.core.model import Array64
from app.inference.core.plan import MechanismPlan
from app.inference.core.release import Released
from app.inference.core.statistics import Averages, ConjugateModel, RowEncoder
from app.inference.methods.vips.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Setup:
    """The parts of a run that no answer changes."""

    model: ConjugateModel
    design: RowEncoder
    plan: MechanismPlan
    facts: DeclaredFacts
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class State:
    """The answers so far, as averages, and the belief that follows from them.

    ``done`` counts queries. ``variances`` are the variances of the averages' noise, by block.
    """

    setup: Setup
    done: int
    radius: float
    belief: Array64
    sums: Mapping[str, Array64] = field(default_factory=dict)
    variances: Mapping[str, float] = field(default_factory=dict)
    released: Released | None = None

    @property
    def averages(self) -> Averages:
        """The averages with the standard deviations of their noise."""
        return Averages(self.sums, {name: variance**0.5 for name, variance in self.variances.items()}, self.radius)
