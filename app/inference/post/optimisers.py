"""Adam (Kingma & Ba 2015, Algorithm 1) and AdaGrad (Duchi, Hazan & Singer 2011, diagonal form) as pure functions."""

import math
from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64

_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-12
_MOST_GRADIENT = 1e100
"""Its square is a number still."""


def finite(gradient: Array64) -> Array64:
    """A copy of ``gradient`` with finite coordinates: one that overflowed keeps its sign, what is no number is zero."""
    return np.clip(np.nan_to_num(gradient), -_MOST_GRADIENT, _MOST_GRADIENT)


@dataclass(frozen=True, slots=True)
class Adam:
    """Running sums of a gradient and of its squares, discounted by ``_BETA1`` and ``_BETA2``, after ``count`` steps."""

    count: int
    first: Array64
    second: Array64


def adam_init(shape: tuple[int, ...]) -> Adam:
    """No steps yet."""
    return Adam(0, np.zeros(shape), np.zeros(shape))


def adam_widen(state: Adam) -> Adam:
    """The same moments with one more coordinate, which has none yet."""
    return Adam(state.count, np.append(state.first, 0.0), np.append(state.second, 0.0))


def adam_step(state: Adam, gradient: Array64, rate: float = 1.0) -> tuple[Adam, Array64]:
    """The move to *subtract*, of about ``rate`` in each coordinate, and the next state; written over ``gradient``.

    What makes averages of discounted sums, and takes their bias away, is one factor for all coordinates.
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
    """A factor that falls from 1 at step 0 to 0 at ``steps``."""
    return 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0)))


@dataclass(frozen=True, slots=True)
class AdaGrad:
    """The running sum of squared gradients."""

    squares: Array64


def adagrad_init(shape: tuple[int, ...]) -> AdaGrad:
    """No steps yet."""
    return AdaGrad(np.zeros(shape))


def adagrad_step(state: AdaGrad, gradient: Array64) -> tuple[AdaGrad, Array64]:
    """The direction, of at most unit size, and the next state; scaling it is the caller's."""
    squares = state.squares + np.square(gradient)
    return AdaGrad(squares), gradient / (np.sqrt(squares) + _TINY)
