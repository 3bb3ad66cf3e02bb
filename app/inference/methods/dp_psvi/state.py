"""A pseudocoreset on its way, as DP-PSVI moves it."""

from dataclasses import dataclass
from typing import Final

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.plan import MechanismPlan
from app.inference.core.priors import Prior
from app.inference.methods.dp_psvi.growth import INCREMENTAL, JOINT, SCHEDULE, points_in_play
from app.inference.post.optimisers import Adam
from app.inference.private_zone.mechanisms import CLIP_FLOOR

LEAST_CLIP: Final = "least_clip"
"""The plan's parameter of that name."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What stays fixed through a run."""

    model: Model
    design: Design
    prior: Prior
    plan: MechanismPlan
    sampling_rate: float
    starting_log_weight: float
    population: Array64  # folded rows (n, row_width) that know the declarations only
    rows_per_unit: int

    @property
    def least_clip(self) -> float:
        """As the plan states it; plans of earlier versions know the public floor only."""
        return float(self.plan.parameters.get(LEAST_CLIP, CLIP_FLOOR))


@dataclass(frozen=True, slots=True)
class State:
    """A pseudocoreset on its way: points ``u`` (M, p), targets ``y`` (M,), log weights, and what optimises them."""

    setup: Setup
    done: int
    u: Array64
    y: Array64
    log_weights: Array64
    mode: Array64  # of the current posterior, and its last move: for the next warm start
    drift: Array64
    point_moments: Adam
    target_moments: Adam
    weight_moments: Adam
    clip: float
    draws: Array64  # of the last iteration, (S, D), and what the data's potentials at them exceeded the points' by
    residual: Array64
    asked: Array64  # sum (D,) over the end of the run of the steps that residuals ask for


def points(plan: MechanismPlan, done: int) -> int:
    """How many there are after ``done`` iterations."""
    return points_in_play(plan.parameters.get(SCHEDULE.name, JOINT), plan.size, plan.steps, done)


def select_settled(plan: MechanismPlan) -> slice:
    """The points that keep their place while a newcomer moves."""
    return slice(0, -1 if plan.parameters.get(SCHEDULE.name, JOINT) == INCREMENTAL else 0)
