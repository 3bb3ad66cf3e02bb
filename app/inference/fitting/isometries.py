"""Isometries with prescribed images, which give tight frames with prescribed inner products.

A tight frame ``V`` ``(k, M)`` with ``V V' = diag(information)`` is needed, such that ``V'h`` and ``V't`` are given
vectors of R^M and ``V s = pull`` for a given ``s``. With ``V = diag(information)^(1/2) Q`` the rows of Q are
orthonormal, so ``Q'`` is an isometry of R^k into R^M. One more dimension holds the part of ``s`` in the kernel of V.

An isometry with prescribed images exists if the inner products agree. Sources and images are orthonormalised in the
same order, to ``F`` and ``G``. Then ``J = G F' + K R'``, where R is a basis of the complement of F, and K any
orthonormal columns orthogonal to G.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64

_DEPENDENT = 1e-9
"""A vector adds no direction if its orthogonal part, relative to its length, is smaller than this."""


@dataclass(frozen=True, slots=True)
class Isometries:
    """The isometries of R^n into R^M that map ``sources`` to ``images``.

    ``sources`` F ``(n, r)`` and ``images`` G ``(M, r)`` have orthonormal columns; ``rest`` R ``(n, n - r)`` is a basis
    of the complement of F.
    """

    sources: Array64
    images: Array64
    rest: Array64

    def random(self, rng: np.random.Generator) -> Array64:
        """Draw one of them, ``(M, n)``, uniformly."""
        columns = self._project_out(rng.standard_normal((len(self.images), self.rest.shape[1])))
        return self._complete(np.linalg.qr(columns)[0])

    def nearest(self, wanted: Array64, fallback: Array64) -> Array64:
        """Find the isometry J ``(M, n)`` with the largest ``tr(J'wanted)`` (Procrustes problem).

        Where ``wanted`` is zero, it follows ``fallback``.
        """
        tiny = _DEPENDENT * float(np.linalg.norm(wanted))
        left, _, right = np.linalg.svd(self._project_out((wanted + tiny * fallback) @ self.rest), full_matrices=False)
        return self._complete(left @ right)

    def _project_out(self, columns: Array64) -> Array64:
        for _ in range(2):
            columns = columns - self.images @ (self.images.T @ columns)
        return columns

    def _complete(self, free: Array64) -> Array64:
        return self.images @ self.sources.T + free @ self.rest.T


def find_isometries(sources: Array64, images: Array64) -> Isometries:
    """Find all isometries J with ``J sources = images``.

    ``sources`` is ``(n, r)``, ``images`` ``(M, r)``, with ``M >= n``; their Gram matrices must be equal.
    """
    n, m = len(sources), len(images)
    before, after = np.empty((n, 0)), np.empty((m, 0))
    for source, image in zip(sources.T, images.T, strict=True):
        new_source, new_image = _orthogonalise(source, before), _orthogonalise(image, after)
        length, reach = float(np.linalg.norm(new_source)), float(np.linalg.norm(new_image))
        if before.shape[1] < n and length > _DEPENDENT * np.linalg.norm(source) and reach > 0:
            before = np.column_stack((before, new_source / length))
            after = np.column_stack((after, new_image / reach))
    complete, _ = np.linalg.qr(before, mode="complete")
    return Isometries(before, after, complete[:, before.shape[1] :])


def _orthogonalise(vector: Array64, basis: Array64) -> Array64:
    """Compute the part of ``vector`` orthogonal to ``basis``; twice, to remove the rounding error."""
    for _ in range(2):
        vector = vector - basis @ (basis.T @ vector)
    return vector
