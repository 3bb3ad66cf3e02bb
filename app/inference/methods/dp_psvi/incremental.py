"""Incremental PSVI: pseudopoints are added one by one (Bayesian Pseudocoresets, 2020, supplement C.3.5).

Each point gets an equal share of the planned iterations. During it, the new point and all weights move; earlier points
stay fixed. Learning rates decay over the whole run, and Adam's moments of the weights are carried over: restarting them
with each point overshoots and often ends as far away as the prior. The joint schedule is more reliable: of incremental
runs of 1,000 iterations on a small table, 5 to 10 % ended ten times further away.

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


def count_points(schedule: str, size: int, steps: int, done: int) -> int:
    """Count the points in iteration ``done`` of ``steps``.

    In the incremental schedule, point m is added at iteration ``ceil(m steps / size)``.
    """
    return size if schedule == JOINT else 1 + done * size // steps


def choose_point(
    rng: np.random.Generator, model: Model, design: Design, draws: Array64, residual: Array64
) -> tuple[Array64, Array64]:
    """Choose a design row ``(1, p)`` and its target ``(1,)`` as a new point.

    Of many candidates from the declared bounds, it is the most correlated with ``residual`` ``(S,)``: the data's
    potentials at ``draws`` ``(S, D)`` minus the pseudocoreset's.
    """
    u = design.sample(rng, _CANDIDATES)
    y = model.starting_targets(rng, u)
    potentials = compute_centred_potentials(model, model.fold(u, y), draws)
    norms = np.sqrt(np.vecdot(potentials, potentials))
    best = int(np.argmax((potentials @ residual) / np.maximum(norms, np.finfo(np.float64).tiny)))
    return u[best : best + 1], y[best : best + 1]
