"""Points from their scalars: a tight frame with prescribed inner products.

Wanted are columns ``V`` ``(k, M)`` with ``V V' = diag(information)``, whose combinations ``V'h``, ``V't`` are given
vectors of R^M and which map a given ``s`` to ``V s = pull``. With ``V = diag(information)^(1/2) Q`` the rows of Q are
orthonormal, so ``Q'`` is an isometry of R^k into R^M; one more dimension carries the part of ``s`` that no point sees.
An isometry with prescribed images exists as soon as the inner products agree: both sides are orthonormalised in the
same order, to ``F`` and ``G``, and ``J = G F' + K R'`` with R a basis of what F leaves, and any orthonormal K beside G.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64

_DEPENDENT = 1e-9
"""A vector whose new part is smaller than this, relative to itself, adds no direction."""


@dataclass(frozen=True, slots=True)
class Isometries:
    """Maps of R^n into R^M with given images: ``sources`` F ``(n, r)``, ``images`` G ``(M, r)``, ``rest`` R."""

    sources: Array64
    images: Array64
    rest: Array64

    def random(self, rng: np.random.Generator) -> Array64:
        """One of them, ``(M, n)``, uniformly."""
        return self._with(np.linalg.qr(self._beside(rng.standard_normal((len(self.images), self.rest.shape[1]))))[0])

    def nearest(self, wanted: Array64, fallback: Array64) -> Array64:
        """The J ``(M, n)`` with the largest ``tr(J'wanted)`` (Procrustes); ``fallback`` J where that says nothing."""
        tiny = _DEPENDENT * float(np.linalg.norm(wanted))
        left, _, right = np.linalg.svd(self._beside((wanted + tiny * fallback) @ self.rest), full_matrices=False)
        return self._with(left @ right)

    def _beside(self, columns: Array64) -> Array64:
        for _ in range(2):
            columns = columns - self.images @ (self.images.T @ columns)
        return columns

    def _with(self, free: Array64) -> Array64:
        return self.images @ self.sources.T + free @ self.rest.T


def isometries(sources: Array64, images: Array64) -> Isometries:
    """All with ``J sources = images``, for ``(n, r)`` and ``(M, r)`` of equal Gram matrices, ``M >= n``."""
    n, m = len(sources), len(images)
    before, after = np.empty((n, 0)), np.empty((m, 0))
    for source, image in zip(sources.T, images.T, strict=True):
        new_source, new_image = _orthogonal(source, before), _orthogonal(image, after)
        length, reach = float(np.linalg.norm(new_source)), float(np.linalg.norm(new_image))
        if before.shape[1] < n and length > _DEPENDENT * np.linalg.norm(source) and reach > 0:
            before = np.column_stack((before, new_source / length))
            after = np.column_stack((after, new_image / reach))
    complete, _ = np.linalg.qr(before, mode="complete")
    return Isometries(before, after, complete[:, before.shape[1] :])


def _orthogonal(vector: Array64, basis: Array64) -> Array64:
    """What is left of ``vector`` beside ``basis``; twice, for what rounding leaves after the first time."""
    for _ in range(2):
        vector = vector - basis @ (basis.T @ vector)
    return vector
