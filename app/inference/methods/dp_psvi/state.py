"""The state of DP-PSVI."""

from dataclasses import dataclass
from typing import Final

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.plan import MechanismPlan
from app.inference.core.priors import Prior
from app.inference.methods.dp_psvi.incremental import INCREMENTAL, JOINT, SCHEDULE, count_points
from app.inference.methods.steps import Schedule
from app.inference.post.optimisers import Adam
from app.inference.private_zone.mechanisms import CLIP_FLOOR

LEAST_CLIP: Final = "least_clip"
"""The name of a plan's parameter: the least clipping norm."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The constant part of a run."""

    model: Model
    design: Design
    prior: Prior
    plan: MechanismPlan
    sampling_rate: float
    starting_weight: float
    steps: Schedule
    population: Array64  # folded rows (n, row_width) drawn from the declared bounds
    rows_per_unit: int
    plain: Model  # of the request; ``model`` is its beta-likelihood if ``beta`` is above 0
    beta: float = 0.0

    @property
    def least_clip(self) -> float:
        """The least clipping norm of the plan; plans of earlier versions have the public floor."""
        return float(self.plan.parameters.get(LEAST_CLIP, CLIP_FLOOR))


@dataclass(frozen=True, slots=True)
class State:
    """The current pseudocoreset and the state of its optimiser.

    Points ``u`` are ``(M, p)``, targets ``y`` and ``weights`` ``(M,)``.
    """

    setup: Setup
    done: int
    u: Array64
    y: Array64
    weights: Array64
    mode: Array64  # (D,), of the current posterior
    drift: Array64  # (D,), the mode's last move; it improves the next warm start
    point_moments: Adam
    target_moments: Adam
    weight_moments: Adam
    clip: float
    draws: Array64  # (S, D), of the last iteration
    residual: Array64  # (S,), the data's potentials at the draws minus the points'
    newton_steps: Array64  # (D,), sum of estimated Newton steps over the end of the run


def count_present_points(plan: MechanismPlan, done: int) -> int:
    """Count the points after ``done`` iterations."""
    return count_points(plan.parameters.get(SCHEDULE.name, JOINT), plan.size, plan.steps, done)


def select_fixed(plan: MechanismPlan) -> slice:
    """Select the points that stay fixed while the newest one moves."""
    return slice(0, -1 if plan.parameters.get(SCHEDULE.name, JOINT) == INCREMENTAL else 0)
