"""Downloaded pseudocoresets: weighted synthetic points that replace a table under one model."""

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import import_pandas
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
    """The release should not be used as a posterior: ``release.trusted`` is False."""


@dataclass(frozen=True, eq=False)
class Pseudocoreset:
    """Weighted points: ``u`` ``(M, p)``, ``y`` ``(M,)`` or None, ``weight`` ``(M,)``.

    ``u`` is in the design's coordinates, with the intercept. ``release`` holds the public metadata of the points.
    """

    release: Release
    u: Array
    y: Array | None
    weight: Array

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

    def laplace(self) -> Gaussian:
        """The Laplace approximation of the posterior given these points; see ``corevault.posterior``.

        Raises ``InvalidArgument`` for a model family that this version does not support.
        """
        return posterior(self.release, self.u, self.y, self.weight)

    def stated_posterior(self) -> Gaussian | None:
        """The posterior that the release states; None for methods that release points only."""
        released = self.release.posterior
        if released is None:
            return None
        spread = np.array(released.variance if released.covariance is None else released.covariance, dtype=np.float64)
        covariance = np.diag(spread) if spread.ndim == 1 else spread
        return Gaussian(released.parameters, np.array(released.mean), covariance, outcome_of(self.release))

    def design_matrix(
        self, table: Table, *, schema: Schema | Dataset | None = None, null_rows: Literal["refuse", "nan"] = "refuse"
    ) -> Array:
        """New rows in the design's coordinates, ``(n, p)``; see ``corevault.design_matrix``."""
        return design_matrix(self.design, table, schema=schema, null_rows=null_rows)


def from_npz(release: Release, content: bytes) -> Pseudocoreset:
    """Reads the npz representation. Raises ``UnexpectedReply`` if it does not fit the release's metadata."""
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
    return Pseudocoreset(release, u, y, weight)


def _floats(array: NDArray[Any]) -> Array:
    return array.astype(np.float64)
