"""Log densities of standardised noise and their derivatives.

The potential of a row is ``psi(e) - rho`` with ``e = (y - a) / sigma`` and ``sigma = noise exp(rho)``.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from app.inference.core.model import Array64


class ShapeDerivatives(NamedTuple):
    """The first three derivatives of ``psi`` in ``e``, each of the shape of ``e``."""

    first: Array64
    second: Array64
    third: Array64


class Shape(Protocol):
    """A log density ``psi`` of standardised noise."""

    def differentiate(self, e: Array64) -> ShapeDerivatives:
        """Compute the derivatives of ``psi`` at ``e``."""


class NormalShape:
    """The normal distribution, ``psi = -e^2 / 2``."""

    def differentiate(self, e: Array64) -> ShapeDerivatives:
        """Compute ``-e``, -1 and 0."""
        return ShapeDerivatives(-e, np.full_like(e, -1.0), np.zeros_like(e))


@dataclass(frozen=True, slots=True)
class StudentShape:
    """The Student-t distribution, ``psi = -(nu + 1)/2 log(1 + e^2 / nu)``."""

    nu: float

    def differentiate(self, e: Array64) -> ShapeDerivatives:
        """Compute the derivatives with ``h = nu / (nu + e^2)``; the second is positive where ``h < 1/2``."""
        h, size = 1 / (1 + np.square(e) / self.nu), (self.nu + 1) / self.nu
        return ShapeDerivatives(
            -size * h * e, -size * h * (2 * h - 1), 2 * size / self.nu * e * np.square(h) * (4 * h - 1)
        )

    def find_residual(self, ratio: Array64) -> Array64:
        """Find ``e`` between ``-sqrt(nu)`` and ``sqrt(nu)`` with ``psi'(e) / psi''(e)`` equal to ``ratio``.

        It is the root of ``e^3 + k e^2 + nu e - k nu`` for ``k = ratio``. Newton's method falls monotonically from
        ``sqrt(nu)``, because the cubic is convex there.
        """
        k = np.abs(ratio)
        e = np.full_like(k, np.sqrt(self.nu))
        for _ in range(_ROOT_STEPS):
            e = e - (((e + k) * e + self.nu) * e - k * self.nu) / ((3 * e + 2 * k) * e + self.nu)
        return np.copysign(e, ratio)


_ROOT_STEPS = 60
