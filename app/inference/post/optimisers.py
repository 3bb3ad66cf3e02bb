"""Adam and AdaGrad as pure functions.

Sources: Kingma & Ba 2015, Algorithm 1; Duchi, Hazan & Singer 2011, diagonal form.
"""

import math
from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64

_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-12
_MOST_GRADIENT = 1e100
"""Largest gradient; its square does not overflow."""


def make_finite(gradient: Array64) -> Array64:
    """Copy ``gradient`` with finite coordinates; infinite ones are clipped, and NaN becomes zero."""
    return np.clip(np.nan_to_num(gradient), -_MOST_GRADIENT, _MOST_GRADIENT)


@dataclass(frozen=True, slots=True)
class Adam:
    """Discounted sums of a gradient and of its squares after ``count`` steps.

    The discount factors are ``_BETA1`` and ``_BETA2``.
    """

    count: int
    first: Array64
    second: Array64


def start_adam(shape: tuple[int, ...]) -> Adam:
    """Make the state before the first step."""
    return Adam(0, np.zeros(shape), np.zeros(shape))


def widen_adam(state: Adam) -> Adam:
    """Append one coordinate, whose moments are zero."""
    return Adam(state.count, np.append(state.first, 0.0), np.append(state.second, 0.0))


def step_adam(state: Adam, gradient: Array64, rate: float = 1.0) -> tuple[Adam, Array64]:
    """Compute the next state and the move to *subtract*.

    The move is about ``rate`` in each coordinate. It overwrites ``gradient``. The factors that average the sums and
    correct their bias are the same for all coordinates.
    """
    count = state.count + 1
    first = _BETA1 * state.first
    first += gradient
    second = _BETA2 * state.second
    gradient *= gradient
    second += gradient
    spread = np.sqrt(second, out=gradient)
    spread += _TINY
    move = np.divide(first, spread, out=spread)
    average, square = (1 - _BETA1) / (1 - _BETA1**count), (1 - _BETA2) / (1 - _BETA2**count)
    move *= rate * average / math.sqrt(square)
    return Adam(count, first, second), move


def cosine_decay(step: int, steps: int) -> float:
    """Compute a factor that falls from 1 at step 0 to 0 at ``steps``."""
    return 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0)))


@dataclass(frozen=True, slots=True)
class AdaGrad:
    """The running sum of squared gradients."""

    squares: Array64


def start_adagrad(shape: tuple[int, ...]) -> AdaGrad:
    """Make the state before the first step."""
    return AdaGrad(np.zeros(shape))


def step_adagrad(state: AdaGrad, gradient: Array64) -> tuple[AdaGrad, Array64]:
    """Compute the next state and the direction, with coordinates of at most 1; the caller scales it."""
    squares = state.squares + np.square(gradient)
    return AdaGrad(squares), gradient / (np.sqrt(squares) + _TINY)
