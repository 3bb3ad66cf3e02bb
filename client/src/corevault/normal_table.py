"""A normal distribution of a table's rows, from the belief of the family ``gaussian``."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corevault.belief import Belief
from corevault.design import DesignColumn
from corevault.errors import InvalidArgument
from corevault.replies.release import Release

Array = NDArray[np.float64]
_FAMILY = "normal-inverse-wishart"


@dataclass(frozen=True, eq=False)
class NormalTable:
    """The mean and the covariance of several columns, in the units of the table.

    ``mean`` and ``covariance`` are posterior expectations. ``mean_covariance`` is the covariance of the mean: that of
    its posterior, plus the noise of the mechanism. ``rows`` is the noised number of rows.

    >>> fitted = NormalTable.from_belief(belief, gaussian_release)
    >>> fitted.columns
    ('age',)
    """

    columns: tuple[str, ...]
    mean: Array
    covariance: Array
    mean_covariance: Array
    rows: float

    @classmethod
    def from_belief(cls, belief: Belief, release: Release) -> "NormalTable":
        """Reads the belief of a release of the family ``gaussian``.

        Raises ``InvalidArgument`` if it is another belief.

        >>> NormalTable.from_belief(belief, gaussian_release).mean.shape
        (1,)
        """
        block = belief.block("posterior")
        if block.family != _FAMILY:
            raise InvalidArgument("This release does not describe the rows of a table; use a release of gaussian.")
        arrays, noise = block.arrays, belief.noise
        centers, scales = _read_units(release.design)
        size, degrees, count = len(scales), float(arrays["degrees"][0]), float(arrays["count"][0])
        covariance = np.asarray(arrays["scale"], dtype=np.float64) / (degrees - size - 1)
        of_mean = covariance / count + (0 if noise is None else np.asarray(noise.covariance))
        outer = np.outer(scales, scales)
        return cls(
            columns=tuple(column.name for column in release.design),
            mean=centers + scales * np.asarray(arrays["mean"]),
            covariance=covariance * outer,
            mean_covariance=of_mean * outer,
            rows=count - 1,
        )

    @property
    def correlation(self) -> Array:
        """The correlation matrix of the columns.

        >>> NormalTable.from_belief(belief, gaussian_release).correlation.diagonal()
        array([1.])
        """
        deviations = np.sqrt(self.covariance.diagonal())
        return np.asarray(self.covariance / np.outer(deviations, deviations))

    @property
    def mean_error(self) -> Array:
        """The standard deviation of each mean, noise included.

        >>> bool((NormalTable.from_belief(belief, gaussian_release).mean_error > 0).all())
        True
        """
        return np.asarray(np.sqrt(self.mean_covariance.diagonal()))

    def sample(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draws ``n`` rows of a table like this one, by column.

        >>> sorted(NormalTable.from_belief(belief, gaussian_release).sample(5, np.random.default_rng(1)))
        ['age']
        """
        drawn = rng.multivariate_normal(self.mean, self.covariance, size=n)
        return {name: drawn[:, place] for place, name in enumerate(self.columns)}


def _read_units(design: Sequence[DesignColumn]) -> tuple[Array, Array]:
    affine = [column.transform for column in design if column.kind == "affine"]
    if len(affine) != len(design):
        raise InvalidArgument("This release does not describe the rows of a table; use a release of gaussian.")
    return np.array([float(each["center"]) for each in affine]), np.array([float(each["scale"]) for each in affine])
