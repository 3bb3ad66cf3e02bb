"""Derivatives that descent needs, for any number ``q`` of linear predictors ``a = (x'theta_1, ..., x'theta_q)`` a row.

``slope`` is ``r = grad f`` in the predictors and ``curvature`` is ``V``, the negative Hessian; contracting the third
derivative with a symmetric ``Q`` gives the gradient of ``tr(V Q)``.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.links import MOST_LOG_NOISE, Link


@dataclass(frozen=True, slots=True)
class Bend:
    """At M points: ``slope`` ``(M, q)``, ``curvature`` ``(M, q, q)``."""

    slope: Array64
    curvature: Array64


class Bends(Protocol):
    """A family's potentials as functions of their predictors ``(M, q)`` and targets ``(M,)``."""

    def at(self, a: Array64, y: Array64) -> Bend:
        """First and second derivatives."""

    def contract(self, a: Array64, y: Array64, q: Array64) -> Array64:
        """Gradients ``(M, q)`` of ``tr(V Q)`` for symmetric ``Q`` ``(M, q, q)``."""

    def in_target(self, a: Array64, y: Array64, q: Array64, seen: Array64) -> Array64:
        """``d/dy [tr(V Q) + r'seen]``, ``(M,)``, for ``seen`` ``(M, q)``; zero for targets that do not move."""


@dataclass(frozen=True, slots=True)
class OfLink:
    """One predictor."""

    link: Link

    def at(self, a: Array64, y: Array64) -> Bend:
        """The link's own."""
        curve = self.link.curve(a[:, 0], y)
        return Bend(curve.slope[:, None], curve.curvature[:, None, None])

    def contract(self, a: Array64, y: Array64, q: Array64) -> Array64:
        """``v' Q``."""
        return self.link.curve(a[:, 0], y).bend[:, None] * q[:, 0]

    def in_target(self, a: Array64, y: Array64, q: Array64, seen: Array64) -> Array64:
        """``(dr/dy) seen``: curvatures do not depend on targets that move."""
        return self.link.slope_in_target(a[:, 0]) * seen[:, 0]


@dataclass(frozen=True, slots=True)
class OfClasses:
    """``f = a_y - log(1 + sum_k exp(a_k))`` for classes 0 to q, ``a_0 = 0``."""

    def at(self, a: Array64, y: Array64) -> Bend:
        """``1{y = k} - p_k`` and ``diag(p) - p p'``."""
        p = probabilities(a)
        chosen = (y[:, None] == np.arange(1, a.shape[1] + 1)).astype(np.float64)
        return Bend(chosen - p, p[:, :, None] * (np.eye(a.shape[1]) - p[:, None, :]))

    def contract(self, a: Array64, y: Array64, q: Array64) -> Array64:
        """``V (diag(Q) - 2 Q p)``."""
        p = probabilities(a)
        inner = np.einsum("maa->ma", q) - 2 * np.einsum("mab,mb->ma", q, p)
        return np.asarray(p * (inner - np.vecdot(p, inner)[:, None]))

    def in_target(self, a: Array64, y: Array64, q: Array64, seen: Array64) -> Array64:
        """Zero: classes are discrete."""
        return np.zeros_like(y)


@dataclass(frozen=True, slots=True)
class OfNoise:
    """``f = -e^2 / 2 - rho`` with ``e = (y - a) / sigma``, predictors ``(a, rho)`` and ``sigma = noise exp(rho)``."""

    noise: float

    def at(self, a: Array64, y: Array64) -> Bend:
        """``(e / sigma, e^2 - 1)`` and ``[[1 / sigma^2, 2 e / sigma], [2 e / sigma, 2 e^2]]``."""
        e, sigma = self._standardise(a, y)
        across = 2 * e / sigma
        curvature = np.array([[sigma**-2.0, across], [across, 2 * e**2]])
        return Bend(np.column_stack((e / sigma, e**2 - 1)), np.moveaxis(curvature, -1, 0))

    def contract(self, a: Array64, y: Array64, q: Array64) -> Array64:
        """By ``de/da = -1 / sigma`` and ``de/drho = -e``."""
        e, sigma = self._standardise(a, y)
        by_e = 4 * (q[:, 0, 1] / sigma + q[:, 1, 1] * e)
        by_sigma = -2 * q[:, 0, 0] / sigma**2 - 4 * q[:, 0, 1] * e / sigma
        return np.column_stack((-by_e / sigma, by_sigma - by_e * e))

    def in_target(self, a: Array64, y: Array64, q: Array64, seen: Array64) -> Array64:
        """By ``de/dy = 1 / sigma``."""
        e, sigma = self._standardise(a, y)
        by_e = 4 * (q[:, 0, 1] / sigma + q[:, 1, 1] * e) + seen[:, 0] / sigma + 2 * e * seen[:, 1]
        return np.asarray(by_e / sigma)

    def _standardise(self, a: Array64, y: Array64) -> tuple[Array64, Array64]:
        sigma = self.noise * np.exp(np.clip(a[:, 1], -MOST_LOG_NOISE, MOST_LOG_NOISE))
        return (y - a[:, 0]) / sigma, sigma


def probabilities(a: Array64) -> Array64:
    """Those of the classes but the first, ``(M, q)``."""
    top = np.maximum(a.max(axis=1, keepdims=True), 0)
    odds = np.exp(a - top)
    return np.asarray(odds / (np.exp(-top) + odds.sum(axis=1, keepdims=True)))
