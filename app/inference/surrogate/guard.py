"""What keeps a surrogate a surrogate, whatever the answers are: bounds that no honest run ever meets.

Answers are clipped to what a table and noise could say at all, and what follows from them is a state that the next
question can be asked in: parameters within a public range, an information matrix that is one. What cannot be mended
is left as it was, and shows as an infinite surprise.
"""

from dataclasses import replace

import numpy as np

from app.inference.protocol import Array64, Oracle, Question
from app.inference.surrogate.schedule import Schedule
from app.inference.surrogate.state import State

LARGEST_PARAMETER = 1e9
LARGEST_INFORMATION = 1e30
_MOST_DEVIATIONS = 50.0
_LEAST_EIGENVALUE, _LEAST_PIVOT = 1e-12, 1e-13
"""Of a matrix with ones on its diagonal that is to be inverted: a thousand times what rounding makes of it."""


def asked(oracle: Oracle, question: Question, schedule: Schedule, share: float, most: float) -> Array64:
    """The answer for all slots: divided by q. A unit adds at most ``most``, and noise beyond 50 deviations is none."""
    bound = most * (schedule.slots + _MOST_DEVIATIONS * schedule.multiplier(share))
    answer = np.nan_to_num(oracle.ask(question), nan=0.0, posinf=bound, neginf=-bound)
    return np.asarray(np.clip(answer, -bound, bound) / schedule.rate)


def steadied(moved: State, before: State) -> State:
    """``moved``, if the next question can be asked there; else as much of it as can be mended or kept."""
    information = sound(moved.information)
    if information is None or not np.all(np.isfinite(moved.theta)):
        return replace(moved, theta=before.theta, information=before.information, surprise=np.inf)
    theta = np.clip(moved.theta, -LARGEST_PARAMETER, LARGEST_PARAMETER)
    return replace(moved, theta=theta, information=information)


def sound(matrix: Array64) -> Array64 | None:
    """``matrix`` ``(D, D)`` where it is positive definite, else one near it that is; None for what is no matrix.

    Near in the metric of its own diagonal, so that units of parameters do not matter.
    """
    if not (np.all(np.isfinite(matrix)) and np.all(matrix.diagonal() > 0)) or np.max(matrix) > LARGEST_INFORMATION:
        return None
    if _invertible(matrix):
        return matrix
    scale = np.sqrt(matrix.diagonal())
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    mended = (vectors * np.maximum(values, _LEAST_EIGENVALUE)) @ vectors.T * np.outer(scale, scale)
    mended = 0.5 * (mended + mended.T)
    return mended if _invertible(mended) else None


def _invertible(matrix: Array64) -> bool:
    try:
        pivots = np.linalg.cholesky(matrix).diagonal()
    except np.linalg.LinAlgError:
        return False
    return bool(np.all(np.square(pivots) >= _LEAST_PIVOT * matrix.diagonal()))
