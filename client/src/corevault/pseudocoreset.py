"""Downloaded pseudocoresets: weighted synthetic points that replace a table under one model."""

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from corevault.belief import Belief
from corevault.design import DesignColumn, Table, design_matrix
from corevault.errors import InvalidArgument, UnexpectedReply
from corevault.exports import frames
from corevault.exports.inference_data import make_inference_data
from corevault.exports.numpyro_program import make_numpyro_model
from corevault.exports.pymc_program import make_pymc_model
from corevault.exports.stan_program import StanProgram, write_stan
from corevault.exports.whitening import Whitening, whiten
from corevault.fitting import posterior
from corevault.gaussian import Gaussian
from corevault.plots import Plots
from corevault.prediction import outcome_of
from corevault.replies.dataset import Dataset
from corevault.replies.release import Release
from corevault.schema import Schema
from corevault.weighted_model import WeightedModel, weigh_model

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


_OTHER_NOISE = "The noise of the release has other parameters than its model."


class UntrustedRelease(UserWarning):
    """The release is not calibrated: its intervals, or all of it, should not be used.

    >>> import warnings
    >>> warnings.simplefilter("error", UntrustedRelease)  # a script that must stop at such a release
    """


@dataclass(frozen=True, eq=False, repr=False)
class Pseudocoreset:
    """Weighted points: ``u`` ``(M, p)``, ``y`` ``(M,)`` or None, ``weight`` ``(M,)``.

    ``u`` is in the design's coordinates, with the intercept. ``release`` holds the public metadata of the points.
    ``belief`` states the noise of the release. It is None for a release of an earlier version.

    >>> core = example()
    >>> core.u.shape, core.weight.shape
    ((30, 4), (30,))
    """

    release: Release
    u: Array
    y: Array | None
    weight: Array
    belief: Belief | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The design columns' names, in the order of ``u``.

        >>> example().columns
        ('age', 'smoker', 'sex=male', 'intercept')
        """
        return tuple(column.name for column in self.design)

    @property
    def design(self) -> tuple[DesignColumn, ...]:
        """The design columns, each with its source in the declared table and its transform.

        >>> [column.kind for column in example().design]
        ['affine', 'affine', 'indicator', 'constant']
        """
        return self.release.design

    @property
    def prior_scale(self) -> float:
        """The scale of the release's prior, for coefficients without a separate scale.

        >>> example().prior_scale
        1.0
        """
        return self.release.model.prior.scale if self.release.model.prior else 1.0

    @property
    def plot(self) -> Plots:
        """Pictures: ``plot.forest()``, ``plot.weights()`` and ``plot.pairs()`` (needs the ``plot`` extra).

        >>> axes = example().plot.forest()
        >>> axes.get_xlabel()
        "coefficient, in the design's coordinates"
        """
        return Plots(self)

    def summary(self, level: float = 0.95, *, noise: bool = True) -> Any:
        """The posterior's coefficients in the units of the table.

        Models with a log or logit link have odds or rate ratios too.
        Short for ``posterior(noise=noise).in_original_units().summary(level)``.

        >>> from corevault import example
        >>> example().summary().loc["age"].round(2).to_dict()["odds_ratio"]
        1.03
        """
        return self.posterior(noise=noise).in_original_units().summary(level)

    def predict(
        self,
        table: Table,
        *,
        schema: Schema | Dataset | None = None,
        level: float = 0.95,
        noise: bool = True,
    ) -> Any:
        """Predictions for new rows of the declared table; see ``Gaussian.predict`` and ``design_matrix``.

        Predictions of categorical targets have no intervals.

        >>> from corevault import example
        >>> rows = {"age": [30, 60], "smoker": [0, 1], "sex": ["male", "female"]}
        >>> example().predict(rows).round(2).values.tolist()
        [[0.4, 0.34, 0.47], [0.63, 0.57, 0.68]]
        """
        return self.posterior(noise=noise).predict(self.design_matrix(table, schema=schema), level=level)

    def __repr__(self) -> str:
        grade = "" if self.release.grade is None else f", {self.release.grade}"
        return (
            f"<Pseudocoreset {self.release.id}: {len(self.u)} points of {self.release.family}{grade}, "
            f"{self.u.shape[1]} design columns>"
        )

    def _repr_html_(self) -> str:
        return self.release._repr_html_()

    def to_numpy(self) -> dict[str, Array]:
        """The points as arrays ``(M,)`` by name: the design columns, ``y`` if there is a target, and ``weight``.

        >>> sorted(example().to_numpy())
        ['age', 'intercept', 'sex=male', 'smoker', 'weight', 'y']
        """
        columns = dict(zip(self.columns, self.u.T.copy(), strict=True))
        target = {} if self.y is None else {"y": self.y}
        return columns | target | {"weight": self.weight}

    def to_pandas(self) -> "pd.DataFrame":
        """A DataFrame of design columns, target and weights (needs the ``pandas`` extra).

        >>> example().to_pandas().columns.to_list()
        ['age', 'smoker', 'sex=male', 'intercept', 'y', 'weight']
        """
        return frames.make_pandas(self.to_numpy())

    def to_polars(self) -> Any:
        """The same table as a polars DataFrame (needs the ``polars`` extra).

        >>> example().to_polars().columns
        ['age', 'smoker', 'sex=male', 'intercept', 'y', 'weight']
        """
        return frames.make_polars(self.to_numpy())

    def to_arrow(self) -> Any:
        """The same table as a pyarrow Table (needs the ``arrow`` extra).

        >>> example().to_arrow().column_names
        ['age', 'smoker', 'sex=male', 'intercept', 'y', 'weight']
        """
        return frames.make_arrow(self.to_numpy())

    def to_csv(self, path: str | Path) -> None:
        """Writes the same table as CSV, which R reads with ``read.csv(path, check.names = FALSE)``.

        >>> example().to_csv("points.csv")
        >>> Path("points.csv").read_text().splitlines()[0]
        'age,smoker,sex=male,intercept,y,weight'
        """
        frames.write_csv(self.to_numpy(), path)

    def stan(self, *, noise: bool = True) -> StanProgram:
        """The model with its weighted points as a Stan program: ``code``, and ``data`` for it.

        The program needs no change: weights, prior and the target's scale are part of it. It samples in whitened
        coordinates, so few steps suffice. ``theta`` is the posterior given the points. ``coefficients`` is ``theta``
        with the release's noise, unless ``noise`` is False. Both are in the order of ``names``, in the design's
        coordinates.

        >>> program = example().stan()
        >>> program.names
        ('age', 'smoker', 'sex=male', 'intercept')
        """
        weighted = self._weigh()
        return write_stan(weighted, self._whiten(weighted, noise=noise))

    def numpyro_model(self, *, noise: bool = True) -> Callable[[], None]:
        """The model with its weighted points as a NumPyro model (needs the ``numpyro`` extra).

        ``coefficients`` of the samples are the parameters; see ``stan`` for their meaning. Call
        ``numpyro.enable_x64()`` first if the weights sum to more than about a million.

        >>> model = example().numpyro_model()
        >>> callable(model)
        True
        """
        weighted = self._weigh()
        return make_numpyro_model(weighted, self._whiten(weighted, noise=noise))

    def pymc_model(self, *, noise: bool = True) -> Any:
        """The model with its weighted points as a ``pymc.Model`` (needs the ``pymc`` extra); see ``stan``.

        >>> sorted(each.name for each in example().pymc_model().free_RVs)
        ['noise', 'z']
        """
        weighted = self._weigh()
        return make_pymc_model(weighted, self._whiten(weighted, noise=noise))

    def to_inference_data(
        self,
        samples: Array | None = None,
        *,
        draws: int = 1000,
        chains: int = 4,
        rng: np.random.Generator | None = None,
        noise: bool = True,
    ) -> Any:
        """Posterior samples and points for ArviZ: ``InferenceData`` of ArviZ 0.x, ``DataTree`` of 1.x.

        ``samples`` ``(chains, draws, D)`` are the ``coefficients`` of a sampler. Without them, the normal posterior of
        ``posterior(noise=noise)`` is sampled with ``rng``. Needs the ``arviz`` extra.

        There is no ``log_likelihood``. PSIS-LOO and WAIC take each weighted pseudopoint for one observation, so they
        would be wrong without a warning.

        >>> container = example().to_inference_data(draws=100, chains=2, rng=np.random.default_rng(1))
        >>> dict(container["posterior"].sizes)["draw"]
        100
        """
        fit = self.posterior(noise=noise)
        if samples is None:
            if rng is None:
                raise InvalidArgument("Pass rng=numpy.random.default_rng(), or the samples of an engine.")
            samples = fit.sample(chains * draws, rng).reshape(chains, draws, -1)
        return make_inference_data(self.release, np.asarray(samples), fit.names, self._rows(), self.columns)

    def _rows(self) -> dict[str, Array]:
        return {"u": self.u, "weight": self.weight} | ({} if self.y is None else {"y": self.y})

    def _weigh(self) -> WeightedModel:
        targets = np.zeros(len(self.u)) if self.y is None else self.y
        return weigh_model(self.release, self.u, targets, self.weight)

    def _whiten(self, weighted: WeightedModel, *, noise: bool) -> Whitening:
        stated = None if self.belief is None or not noise else self.belief.noise
        if stated is not None and stated.names != weighted.names:
            raise UnexpectedReply(_OTHER_NOISE)
        return whiten(self.laplace(noise=False), stated)

    def posterior(self, *, noise: bool = True) -> Gaussian:
        """The posterior of the release: the stated one, or else the Laplace approximation given the points.

        With ``noise``, its covariance includes the error in the mean by noise and by bounds on contributions. So
        intervals and predictions cover both. A release of an earlier version states no noise. Then nothing is added,
        and ``noise`` of the result is None.

        Raises ``InvalidArgument`` for a model family that this version does not support.

        >>> example().posterior().names
        ('age', 'smoker', 'sex=male', 'intercept')
        """
        return self.stated_posterior(noise=noise) or self.laplace(noise=noise)

    def laplace(self, *, noise: bool = True) -> Gaussian:
        """The Laplace approximation of the posterior given these points; see ``corevault.posterior``.

        With ``noise``, its covariance includes the noise, as in ``posterior``.

        Raises ``InvalidArgument`` for a model family that this version does not support.

        >>> example().laplace(noise=False).noise is None
        True
        """
        found = posterior(self.release, self.u, self.y, self.weight)
        return self._add_noise(found) if noise else found

    def stated_posterior(self, *, noise: bool = True) -> Gaussian | None:
        """The posterior that the release states; None for methods that release points only.

        With ``noise``, its covariance includes the noise, as in ``posterior``.

        >>> example().stated_posterior() is None
        True
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
            raise UnexpectedReply(_OTHER_NOISE)
        return found.with_noise(noise)

    def design_matrix(
        self, table: Table, *, schema: Schema | Dataset | None = None, null_rows: Literal["refuse", "nan"] = "refuse"
    ) -> Array:
        """New rows in the design's coordinates, ``(n, p)``; see ``corevault.design_matrix``.

        >>> example().design_matrix({"age": [30], "smoker": [1], "sex": ["male"]}).round(2)
        array([[-0.67,  1.  ,  1.  ,  1.  ]])
        """
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
