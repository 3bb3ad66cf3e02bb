"""Incremental PSVI: pseudopoints are added one by one (Bayesian Pseudocoresets, 2020, supplement C.3.5).

Each point gets an equal share of the planned iterations. During its share, the new point and all weights change, and
earlier points stay fixed. Learning rates decay over the whole run. Adam's moments of the weights are kept when a point
is added. If they were reset, steps would overshoot, and the result would often be as bad as the prior. The joint
schedule is more reliable: of incremental runs of 1,000 iterations on a small table, 5 to 10 % ended ten times as
far from the posterior.

The paper starts a point at the data row that is most correlated with the residual, which would reveal a row. Here the
candidates are drawn from the declared bounds. The residual comes from noised answers, so the choice is post-processing.
"""

from typing import Final

import numpy as np

from app.inference.core.design import Design
from app.inference.core.knobs import Choice
from app.inference.core.model import Array64, Model
from app.inference.post.gradients import compute_centred_potentials

JOINT, INCREMENTAL = "joint", "incremental"
SCHEDULE: Final = Choice(
    "schedule",
    (JOINT, INCREMENTAL),
    "joint: optimise all points together. incremental: add points one by one, each with an equal share of the "
    "iterations.",
    JOINT,
)
_CANDIDATES = 200
"""Number of candidates for a new point."""


def count_points(schedule: str, size: int, steps: int, done: int) -> int:
    """Count the points that exist after ``done`` of ``steps`` iterations.

    In the incremental schedule, point m (from 0) is added after ``ceil(m steps / size)`` iterations.
    """
    return size if schedule == JOINT else 1 + done * size // steps


def choose_point(
    rng: np.random.Generator, model: Model, design: Design, draws: Array64, residual: Array64
) -> tuple[Array64, Array64]:
    """Choose a design row ``(1, p)`` and its target ``(1,)`` as a new point.

    Candidates are drawn from the declared bounds. The choice is the one whose centred potentials at ``draws``
    ``(S, D)`` are most correlated with ``residual`` ``(S,)``. That is the potentials of the data minus the
    pseudocoreset's.
    """
    u = design.sample(rng, _CANDIDATES)
    y = model.starting_targets(rng, u)
    potentials = compute_centred_potentials(model, model.fold(u, y), draws)
    norms = np.sqrt(np.vecdot(potentials, potentials))
    best = int(np.argmax((potentials @ residual) / np.maximum(norms, np.finfo(np.float64).tiny)))
    return u[best : best + 1], y[best : best + 1]
