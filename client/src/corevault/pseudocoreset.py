"""Downloaded pseudocoresets: weighted synthetic points that replace a table under one model."""

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import import_pandas
from corevault.belief import Belief
from corevault.design import DesignColumn, Table, design_matrix
from corevault.errors import UnexpectedReply
from corevault.gaussian import Gaussian
from corevault.posterior import posterior
from corevault.prediction import outcome_of
from corevault.replies.dataset import Dataset
from corevault.replies.release import Release
from corevault.schema import Schema

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


class UntrustedRelease(UserWarning):
    """The release is not calibrated: its intervals, or all of it, should not be used."""


@dataclass(frozen=True, eq=False)
class Pseudocoreset:
    """Weighted points: ``u`` ``(M, p)``, ``y`` ``(M,)`` or None, ``weight`` ``(M,)``.

    ``u`` is in the design's coordinates, with the intercept. ``release`` holds the public metadata of the points.
    ``belief`` states the noise of the release. It is None for a release of an earlier version.
    """

    release: Release
    u: Array
    y: Array | None
    weight: Array
    belief: Belief | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The design columns' names, in the order of ``u``."""
        return tuple(column.name for column in self.design)

    @property
    def design(self) -> tuple[DesignColumn, ...]:
        """The design columns, each with its source in the declared table and its transform."""
        return self.release.design

    @property
    def prior_scale(self) -> float:
        """The scale of the release's prior, for coefficients without a separate scale."""
        return self.release.model.prior.scale if self.release.model.prior else 1.0

    def to_pandas(self) -> "pd.DataFrame":
        """A DataFrame of design columns, target and weights (needs the ``pandas`` extra)."""
        frame = import_pandas().DataFrame(self.u, columns=list(self.columns))
        if self.y is not None:
            frame["y"] = self.y
        frame["weight"] = self.weight
        return frame

    def posterior(self, *, noise: bool = True) -> Gaussian:
        """The posterior of the release: the stated one, or else the Laplace approximation given the points.

        With ``noise``, its covariance includes the error in the mean by noise and by bounds on contributions. So
        intervals and predictions cover both. A release of an earlier version states no noise. Then nothing is added,
        and ``noise`` of the result is None.

        Raises ``InvalidArgument`` for a model family that this version does not support.
        """
        return self.stated_posterior(noise=noise) or self.laplace(noise=noise)

    def laplace(self, *, noise: bool = True) -> Gaussian:
        """The Laplace approximation of the posterior given these points; see ``corevault.posterior``.

        With ``noise``, its covariance includes the noise, as in ``posterior``.

        Raises ``InvalidArgument`` for a model family that this version does not support.
        """
        found = posterior(self.release, self.u, self.y, self.weight)
        return self._add_noise(found) if noise else found

    def stated_posterior(self, *, noise: bool = True) -> Gaussian | None:
        """The posterior that the release states; None for methods that release points only.

        With ``noise``, its covariance includes the noise, as in ``posterior``.
        """
        stated = self._read_stated()
        if stated is None:
            return None
        found = stated.with_outcome(outcome_of(self.release))
        return self._add_noise(found) if noise else found

    def _read_stated(self) -> Gaussian | None:
        released = self.release.posterior
        if released is None:
            return None if self.belief is None else self.belief.posterior
        spread = np.array(released.variance if released.covariance is None else released.covariance, dtype=np.float64)
        return Gaussian(released.parameters, np.array(released.mean), np.diag(spread) if spread.ndim == 1 else spread)

    def _add_noise(self, found: Gaussian) -> Gaussian:
        noise = None if self.belief is None else self.belief.noise
        if noise is None:
            return found
        if noise.names != found.names:
            raise UnexpectedReply("The noise of the release has other parameters than its model.")
        return found.with_noise(noise)

    def design_matrix(
        self, table: Table, *, schema: Schema | Dataset | None = None, null_rows: Literal["refuse", "nan"] = "refuse"
    ) -> Array:
        """New rows in the design's coordinates, ``(n, p)``; see ``corevault.design_matrix``."""
        return design_matrix(self.design, table, schema=schema, null_rows=null_rows)


def from_npz(release: Release, content: bytes, belief: Belief | None = None) -> Pseudocoreset:
    """Reads the npz representation of the points.

    Raises ``UnexpectedReply`` if it does not fit the release's metadata.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            u, weight = _floats(arrays["u"]), _floats(arrays["weight"])
            y = _floats(arrays["y"]) if "y" in arrays and arrays["y"].size else None
            columns = tuple(str(name) for name in arrays["columns"])
    except (KeyError, ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise UnexpectedReply("The points are not an npz archive with u, weight and columns.") from error
    shapes_agree = u.shape == (release.size, len(release.design)) and weight.shape == (release.size,)
    if not shapes_agree or (y is not None and y.shape != (release.size,)):
        raise UnexpectedReply("The points do not have the size that the release states.")
    if columns[: len(release.design)] != tuple(column.name for column in release.design):
        raise UnexpectedReply("The columns of the points differ from the release's design.")
    return Pseudocoreset(release, u, y, weight, belief)


def _floats(array: NDArray[Any]) -> Array:
    return array.astype(np.float64)
