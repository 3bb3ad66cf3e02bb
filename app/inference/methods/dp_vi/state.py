"""The state of variational inference, and the constant part of a run."""

from dataclasses import dataclass, field

import numpy as np

from app.inference.core.design import Design
from app.inference.core.model import Array64, Model
from app.inference.core.plan import Mechanism, MechanismPlan
from app.inference.core.priors import Prior
from app.inference.core.release import Posterior
from app.inference.fitting.fit import Fitted
from app.inference.methods.dp_vi.mean_field import Box, MeanField
from app.inference.methods.dp_vi.significance import Significance


@dataclass(frozen=True, slots=True)
class Setup:
    """The constant part of a run."""

    model: Model
    design: Design
    prior: Prior
    plan: MechanismPlan
    mechanism: Mechanism
    slots: int
    rows_per_unit: int
    scores: int  # the number of score queries; the rest of the plan are information queries
    population: Array64  # design rows (n, p) drawn from the declared bounds
    clips: tuple[float, float]  # least and largest clipping norm
    box: Box


@dataclass(frozen=True, slots=True)
class State:
    """The current approximation, and at the end the release."""

    setup: Setup
    done: int
    approximation: MeanField
    clip: float
    information: Array64  # (D, D), sum of answers in the metric of the approximation
    significance: Significance = field(default_factory=Significance)  # of the scores
    posterior: Posterior | None = None
    fitted: Fitted | None = None
    noise_kl: float = 0.0
    learned: float = 0.0
    noise_in_sds: Array64 = field(default_factory=lambda: np.zeros(0))
    doubt: Array64 | None = None  # (D, D)
