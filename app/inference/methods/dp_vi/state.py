"""What stays fixed through a run of variational inference, and what moves."""

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
    """What stays fixed through a run."""

    model: Model
    design: Design
    prior: Prior
    plan: MechanismPlan
    mechanism: Mechanism
    slots: int
    rows_per_unit: int
    scores: int  # queries for scores; what is left of the plan are those for the information
    population: Array64  # design rows (n, p) that know the declarations only
    clips: tuple[float, float]
    box: Box


@dataclass(frozen=True, slots=True)
class State:
    """A belief on its way, and at the end what is released."""

    setup: Setup
    done: int
    belief: MeanField
    clip: float
    information: Array64  # sum of answers (D, D), in the metric of the belief
    evidence: Significance = field(default_factory=Significance)  # of the scores
    posterior: Posterior | None = None
    fitted: Fitted | None = None
    noise_kl: float = 0.0
    learned: float = 0.0
    noise_in_sds: Array64 = field(default_factory=lambda: np.zeros(0))
