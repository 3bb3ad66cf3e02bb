"""Pseudopoints that enter one by one (incremental PSVI: Bayesian Pseudocoresets, 2020, supplement C.3.5).

The planned iterations are shared among the points. While its share lasts, a newcomer moves, and so do all weights;
points that came before keep their place. Rates decay over the whole run, and the weights' moments are kept: starting
them anew with each point overshoots and often ends at the prior's distance. (Even so it is less reliable than all
points together: of runs of 1,000 iterations on a small table, one in ten or twenty ended ten times further away.)

The paper starts a point at the data row that is most correlated with the residual, which would show a row; here it
starts at that one of many rows that know the declarations only. The residual is the one of noised answers, so the
choice is post-processing.
"""

from typing import Final

import numpy as np

from app.inference.core.design import Design
from app.inference.core.knobs import Choice
from app.inference.core.model import Array64, Model
from app.inference.post.gradients import centred_potentials

JOINT, INCREMENTAL = "joint", "incremental"
SCHEDULE: Final = Choice(
    "schedule",
    (JOINT, INCREMENTAL),
    "Optimise all points together, or let them enter one by one, each in its share of the iterations.",
    JOINT,
)
_CANDIDATES = 200


def points_in_play(schedule: str, size: int, steps: int, done: int) -> int:
    """Points that iteration ``done`` of ``steps`` works with: point m enters at iteration ceil(m steps / size)."""
    return size if schedule == JOINT else 1 + done * size // steps


def newcomer(
    rng: np.random.Generator, model: Model, design: Design, draws: Array64, residual: Array64
) -> tuple[Array64, Array64]:
    """A design row ``(1, p)`` and its target ``(1,)``: of many from the model, the most correlated with ``residual``.

    ``residual`` ``(S,)`` is what the data's potentials at ``draws`` ``(S, D)`` exceed the pseudocoreset's by.
    """
    u = design.sample(rng, _CANDIDATES)
    y = model.starting_targets(rng, u)
    potentials = centred_potentials(model, model.fold(u, y), draws)
    norms = np.sqrt(np.vecdot(potentials, potentials))
    best = int(np.argmax((potentials @ residual) / np.maximum(norms, np.finfo(np.float64).tiny)))
    return u[best : best + 1], y[best : best + 1]
