"""Derivatives of potentials in their linear predictors, up to contractions of the third.

A row has q linear predictors ``a = (x'theta_1, ..., x'theta_q)``. ``slope`` is the gradient ``r`` of the potential
``f`` in them, and ``curvature`` is the negative Hessian ``V``. The third derivative, contracted with a symmetric
``Q``, is the gradient of ``tr(V Q)``.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from app.inference.core.model import Array64
from app.inference.fitting.links import MOST_LOG_NOISE, Link
from app.inference.fitting.shapes import NormalShape, Shape


@dataclass(frozen=True, slots=True)
class Derivatives:
    """First and second derivatives at M points: ``slope`` ``(M, q)``, ``curvature`` ``(M, q, q)``."""

    slope: Array64
    curvature: Array64


class PotentialDerivatives(Protocol):
    """Derivatives of a family's potentials at predictors ``(M, q)`` and targets ``(M,)``."""

    def at(self, a: Array64, y: Array64) -> Derivatives:
        """Compute first and second derivatives."""

    def contract(self, a: Array64, y: Array64, q: Array64) -> Array64:
        """Compute gradients ``(M, q)`` of ``tr(V Q)`` in the predictors.

        ``Q`` is symmetric, ``(M, q, q)``.
        """

    def differentiate_in_target(self, a: Array64, y: Array64, q: Array64, direction: Array64) -> Array64:
        """Compute ``d/dy [tr(V Q) + r'direction]``, ``(M,)``; zero for discrete targets.

        ``q`` is ``(M, q, q)``, ``direction`` ``(M, q)``.
        """


@dataclass(frozen=True, slots=True)
class LinkDerivatives:
    """Derivatives of models with one linear predictor, from their link."""

    link: Link

    def at(self, a: Array64, y: Array64) -> Derivatives:
        """Read slope and curvature from the link."""
        curve = self.link.curve(a[:, 0], y)
        return Derivatives(curve.slope[:, None], curve.curvature[:, None, None])

    def contract(self, a: Array64, y: Array64, q: Array64) -> Array64:
        """Compute ``dv/da Q``."""
        return self.link.curve(a[:, 0], y).curvature_slope[:, None] * q[:, 0]

    def differentiate_in_target(self, a: Array64, y: Array64, q: Array64, direction: Array64) -> Array64:
        """Compute ``(dv/dy) Q + (dr/dy) direction``."""
        by_curvature = self.link.curvature_in_target(a[:, 0], y) * q[:, 0, 0]
        return by_curvature + self.link.slope_in_target(a[:, 0], y) * direction[:, 0]


@dataclass(frozen=True, slots=True)
class SoftmaxDerivatives:
    """Derivatives of the multinomial potential.

    It is ``f = a_y - log(1 + sum_k exp(a_k))`` for classes 0 to q, with ``a_0 = 0``.
    """

    def at(self, a: Array64, y: Array64) -> Derivatives:
        """Compute ``1{y = k} - p_k`` and ``diag(p) - p p'``."""
        p = compute_class_probabilities(a)
        chosen = (y[:, None] == np.arange(1, a.shape[1] + 1)).astype(np.float64)
        return Derivatives(chosen - p, p[:, :, None] * (np.eye(a.shape[1]) - p[:, None, :]))

    def contract(self, a: Array64, y: Array64, q: Array64) -> Array64:
        """Compute ``V (diag(Q) - 2 Q p)``."""
        p = compute_class_probabilities(a)
        inner = np.einsum("maa->ma", q) - 2 * np.einsum("mab,mb->ma", q, p)
        return np.asarray(p * (inner - np.vecdot(p, inner)[:, None]))

    def differentiate_in_target(self, a: Array64, y: Array64, q: Array64, direction: Array64) -> Array64:
        """Return zeros, because classes are discrete."""
        return np.zeros_like(y)


@dataclass(frozen=True, slots=True)
class UnknownNoiseDerivatives:
    """Derivatives of the potential of a target with unknown noise.

    It is ``f = psi(e) - rho``, with predictors ``(a, rho)``, ``e = (y - a) / sigma`` and ``sigma = noise exp(rho)``.
    ``kappa`` is the derivative ``psi' + e psi''`` of ``e psi'``.
    """

    noise: float
    shape: Shape = field(default_factory=NormalShape)

    def at(self, a: Array64, y: Array64) -> Derivatives:
        """Compute first and second derivatives.

        They are ``(-psi' / sigma, -e psi' - 1)`` and
        ``-[[psi'' / sigma^2, kappa / sigma], [kappa / sigma, e kappa]]``.
        """
        e, sigma = self._standardise(a, y)
        psi = self.shape.differentiate(e)
        kappa = psi.first + e * psi.second
        across = -kappa / sigma
        curvature = np.array([[-psi.second / sigma**2, across], [across, -e * kappa]])
        return Derivatives(np.column_stack((-psi.first / sigma, -e * psi.first - 1)), np.moveaxis(curvature, -1, 0))

    def contract(self, a: Array64, y: Array64, q: Array64) -> Array64:
        """Compute the contraction by ``de/da = -1 / sigma`` and ``de/drho = -e``."""
        e, sigma = self._standardise(a, y)
        psi, by_e = self.shape.differentiate(e), self._contract_by_residual(e, sigma, q)
        by_sigma = 2 * psi.second * q[:, 0, 0] / sigma**2 + 2 * (psi.first + e * psi.second) * q[:, 0, 1] / sigma
        return np.column_stack((-by_e / sigma, by_sigma - by_e * e))

    def differentiate_in_target(self, a: Array64, y: Array64, q: Array64, direction: Array64) -> Array64:
        """Compute the derivative by ``de/dy = 1 / sigma``."""
        e, sigma = self._standardise(a, y)
        psi = self.shape.differentiate(e)
        by_slope = -psi.second * direction[:, 0] / sigma - (psi.first + e * psi.second) * direction[:, 1]
        return np.asarray((self._contract_by_residual(e, sigma, q) + by_slope) / sigma)

    def _contract_by_residual(self, e: Array64, sigma: Array64, q: Array64) -> Array64:
        """Compute the derivative of ``tr(V Q)`` in ``e``, ``(M,)``, at a fixed ``sigma``."""
        psi = self.shape.differentiate(e)
        kappa, kappa_slope = psi.first + e * psi.second, 2 * psi.second + e * psi.third
        own = -psi.third * q[:, 0, 0] / sigma**2 - 2 * kappa_slope * q[:, 0, 1] / sigma
        return np.asarray(own - (kappa + e * kappa_slope) * q[:, 1, 1])

    def _standardise(self, a: Array64, y: Array64) -> tuple[Array64, Array64]:
        sigma = self.noise * np.exp(np.clip(a[:, 1], -MOST_LOG_NOISE, MOST_LOG_NOISE))
        return (y - a[:, 0]) / sigma, sigma


def compute_class_probabilities(a: Array64) -> Array64:
    """Compute the probabilities ``(M, q)`` of all classes except the first.

    ``a`` ``(M, q)`` are the predictors.
    """
    top = np.maximum(a.max(axis=1, keepdims=True), 0)
    odds = np.exp(a - top)
    return np.asarray(odds / (np.exp(-top) + odds.sum(axis=1, keepdims=True)))
