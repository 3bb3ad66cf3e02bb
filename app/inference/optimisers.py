"""Adam (Kingma & Ba 2015, Algorithm 1) and AdaGrad (Duchi, Hazan & Singer 2011, diagonal form) as pure functions."""

from dataclasses import dataclass

import numpy as np

from app.inference.protocol import Array64

_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-12


@dataclass(frozen=True, slots=True)
class Adam:
    """Running first and second moments of a gradient after ``count`` steps."""

    count: int
    first: Array64
    second: Array64


def adam_init(shape: tuple[int, ...]) -> Adam:
    """No steps yet."""
    return Adam(0, np.zeros(shape), np.zeros(shape))


def adam_widen(state: Adam) -> Adam:
    """The same moments with one more coordinate, which has none yet."""
    return Adam(state.count, np.append(state.first, 0.0), np.append(state.second, 0.0))


def adam_step(state: Adam, gradient: Array64) -> tuple[Adam, Array64]:
    """The direction to *subtract*, of about unit size, and the next state; scaling it is the caller's."""
    count = state.count + 1
    first = _BETA1 * state.first
    first += (1 - _BETA1) * gradient
    second = np.square(gradient)
    second *= 1 - _BETA2
    second += _BETA2 * state.second
    spread = np.sqrt(second)
    spread *= (1 - _BETA1**count) / np.sqrt(1 - _BETA2**count)
    spread += _TINY
    return Adam(count, first, second), np.divide(first, spread, out=spread)


def cosine_decay(step: int, steps: int) -> float:
    """A factor that falls from 1 at step 0 to 0 at ``steps``."""
    return 0.5 * (1 + float(np.cos(np.pi * min(step / steps, 1.0))))


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
