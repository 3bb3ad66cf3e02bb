"""Normal distributions of named coefficients, such as Laplace approximations of posteriors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular

from corevault._arguments import describe, import_pandas, require_number, require_whole_number
from corevault._show import Table, make_table
from corevault.errors import InvalidArgument, WrongType
from corevault.prediction import Outcome, find_quantile, predict_mean, predict_probability, predict_rows

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian:
    """``N(mean, covariance)`` over coefficients ``names``; shapes ``(p,)`` and ``(p, p)``, positive definite.

    ``outcome`` describes the model's predictions; it is None for an object that you constructed. ``noise`` ``(p, p)``
    is the part of ``covariance`` that a release states for its noise; it is None if ``covariance`` leaves noise out.
    ``units`` is ``design`` for coefficients of the design's columns, or ``original``; see ``in_original_units``.

    >>> belief = Gaussian(("a", "b"), np.zeros(2), np.diag([1.0, 4.0]))
    >>> belief.sd
    array([1., 2.])
    """

    names: tuple[str, ...]
    mean: Array
    covariance: Array
    outcome: Outcome | None = None
    noise: Array | None = None
    units: Literal["design", "original"] = "design"

    @classmethod
    def prior(cls, names: Sequence[str], scale: float) -> Self:
        """``N(0, scale² I)``.

        >>> Gaussian.prior(["a", "b"], 2.0).sd
        array([2., 2.])
        """
        require_number(scale, "scale")
        return cls(tuple(names), np.zeros(len(names)), scale**2 * np.eye(len(names)))

    def to_belief(self) -> dict[str, Any]:
        """The parameter ``belief`` of the method ``dp-groups``, with this distribution.

        Raises ``InvalidArgument`` in original units.

        >>> Gaussian(("a",), np.zeros(1), np.eye(1)).to_belief()
        {'parameters': ['a'], 'mean': [0.0], 'covariance': [[1.0]]}
        """
        if self.units != "design":
            raise InvalidArgument("A belief is in the design's units; use the posterior before in_original_units().")
        covariance = (self.covariance + self.covariance.T) / 2
        return {"parameters": list(self.names), "mean": self.mean.tolist(), "covariance": covariance.tolist()}

    @property
    def sd(self) -> Array:
        """Standard deviations, shape ``(p,)``.

        >>> example().posterior().sd.round(2)
        array([0.11, 0.07, 0.13, 0.09])
        """
        deviations: Array = np.sqrt(np.diag(self.covariance))
        return deviations

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """``n`` draws, shape ``(n, p)``.

        >>> example().posterior().sample(1000, np.random.default_rng(1)).shape
        (1000, 4)
        """
        if not isinstance(rng, np.random.Generator):
            raise WrongType(f"rng must be a generator, such as numpy.random.default_rng(); {describe(rng)}.")
        require_whole_number(n, "n", lower=0)
        root = cholesky(self.covariance, lower=True)
        draws: Array = self.mean + rng.standard_normal((n, len(self.mean))) @ root.T
        return draws

    def intervals(self, level: float = 0.95) -> Array:
        """Central intervals of the coefficients, shape ``(p, 2)``: ``mean ± z sd``.

        They include the noise of a release if ``noise`` is not None.

        >>> from corevault import example
        >>> example().posterior().intervals(0.9).round(1).tolist()[0]
        [0.7, 1.1]
        """
        half = find_quantile(level) * self.sd
        return np.column_stack([self.mean - half, self.mean + half])

    def summary(self, level: float = 0.95) -> Any:
        """A row for each coefficient: mean, sd, and the ``low`` and ``high`` end of its interval.

        In original units, models with a log or logit link have three more columns: the odds ratio or rate ratio of one
        more unit, and its interval. The table is a DataFrame with the index ``name``, or a plain ``Table`` if pandas is
        not installed.

        >>> from corevault import example
        >>> example().posterior().summary().loc["age"].round(2).to_dict()
        {'mean': 0.91, 'sd': 0.11, 'low': 0.69, 'high': 1.13}
        """
        return make_table(self.rows(level), index="name")

    def rows(self, level: float = 0.95) -> list[dict[str, Any]]:
        """The rows of ``summary`` as dictionaries.

        >>> [row["name"] for row in example().posterior().rows()]
        ['age', 'smoker', 'sex=male', 'intercept']
        """
        ratio = self._ratio_name()
        columns: dict[str, Array] = {"mean": self.mean, "sd": self.sd}
        columns["low"], columns["high"] = self.intervals(level).T
        if self.units == "original" and ratio is not None:
            columns[ratio], columns["ratio_low"], columns["ratio_high"] = np.exp(
                [self.mean, columns["low"], columns["high"]]
            )
        values = np.column_stack(list(columns.values())).tolist()
        return [
            {"name": name} | dict(zip(columns, row, strict=True)) for name, row in zip(self.names, values, strict=True)
        ]

    def ratios(self, steps: Mapping[str, float] | None = None, *, level: float = 0.95) -> Any:
        """Odds or rate ratios with intervals.

        ``steps`` are changes of columns in the table's units, by default 1. For columns in interactions, see
        ``in_original_units``.

        >>> from corevault import example
        >>> example().posterior().ratios({"age": 10.0}).loc["age"].round(2).to_dict()
        {'step': 10.0, 'odds_ratio': 1.35, 'low': 1.26, 'high': 1.46}

        Raises ``InvalidArgument`` for a family without ratios, and for a name that is not a coefficient.
        """
        ratio, original = self._ratio_name(), self.in_original_units()
        if ratio is None:
            family = self.outcome.family if self.outcome else "This Gaussian"
            raise InvalidArgument(f"{family} has no odds or rate ratios; see summary() for its coefficients.")
        given = dict(steps or {})
        if unknown := [name for name in given if name not in self.names]:
            raise InvalidArgument(f"There is no coefficient {unknown[0]!r}; steps has names of summary().")
        for name, step in given.items():
            require_number(step, f"The step of {name}")
        rows = []
        for name, mean, sd in zip(self.names, original.mean, original.sd, strict=True):
            step = given.get(name, 1.0)
            half = find_quantile(level) * abs(step) * sd
            center, low, high = np.exp([step * mean, step * mean - half, step * mean + half]).tolist()
            rows.append({"name": name, "step": step, ratio: center, "low": low, "high": high})
        return make_table(rows, index="name")

    def _ratio_name(self) -> str | None:
        from corevault.units import RATIOS  # noqa: PLC0415 - units import predictions

        return None if self.outcome is None else RATIOS.get(self.outcome.family)

    def in_original_units(self) -> Self:
        """The same distribution for coefficients in the units of the declared table.

        A coefficient is then the change of the linear predictor for one more unit of its column, or for a category
        instead of the reference. Under linear and Student-t regression it has the target's units, and
        ``log_noise_scale`` is the logarithm of the noise in these units. Under ``gaussian-mean`` the coefficients are
        the means of the columns.

        If a column is also in an interaction, its coefficient holds where the other members have the design coordinate
        0. For a number, that is the middle of its bounds.

        >>> from corevault import example
        >>> example("linear-regression").posterior().in_original_units()
        Gaussian(5 coefficients in original units, with noise)

        Raises ``InvalidArgument`` for an object that you constructed.
        """
        from corevault.units import undo_scaling  # noqa: PLC0415 - units import predictions

        if self.units == "original":
            return self
        if self.outcome is None or not self.outcome.design:
            raise InvalidArgument("This Gaussian has no design, so its scaling is unknown; use core.posterior().")
        matrix, offset = undo_scaling(self.outcome)
        noise = None if self.noise is None else matrix @ self.noise @ matrix.T
        covariance = matrix @ self.covariance @ matrix.T
        return replace(self, mean=matrix @ self.mean + offset, covariance=covariance, noise=noise, units="original")

    def to_pandas(self) -> "pd.DataFrame":
        """The summary as a DataFrame indexed by name (needs the ``pandas`` extra).

        >>> example().posterior().to_pandas().columns.to_list()
        ['mean', 'sd', 'low', 'high']
        """
        return import_pandas().DataFrame(self.rows()).set_index("name")

    def __repr__(self) -> str:
        units = "original units" if self.units == "original" else "the design's coordinates"
        noise = "" if self.noise is None else ", with noise"
        return f"Gaussian({len(self.names)} coefficients in {units}{noise})"

    def _repr_html_(self) -> str:
        return Table(self.rows())._repr_html_()

    def kl(self, other: "Gaussian") -> float:
        """``KL(self ‖ other)`` in nats. Raises ``InvalidArgument`` for other coefficients.

        >>> belief = example().posterior()
        >>> belief.kl(belief)
        0.0
        """
        if not isinstance(other, Gaussian):
            raise WrongType(f"The argument must be a Gaussian; {describe(other)}.")
        if self.names != other.names or self.units != other.units:
            raise InvalidArgument("The two Gaussians have different coefficients; compare releases of the same model.")
        root = cholesky(other.covariance, lower=True)
        own = cholesky(self.covariance, lower=True)
        spread = np.sum(solve_triangular(root, own, lower=True) ** 2)
        shift = np.sum(solve_triangular(root, self.mean - other.mean, lower=True) ** 2)
        log_ratio = 2.0 * (np.sum(np.log(np.diag(root))) - np.sum(np.log(np.diag(own))))
        return float(0.5 * (spread + shift - len(self.mean) + log_ratio))

    def predict_probability(self, x: Array) -> Array:
        """Posterior predictive probabilities for design rows ``x`` ``(n, p)``.

        Under logistic and probit regression the result is the probability of a 1, ``(n,)``. Under multinomial logistic
        regression it is the probability of each class in declared order, ``(n, K)``. Probit is exact; the others shrink
        each logit by ``1/√(1 + π s²/8)`` (MacKay, 1992). Without an ``outcome``, the model counts as logistic
        regression.

        Raises ``InvalidArgument`` for a family without probabilities, and if ``x`` is not a design matrix.

        >>> core = example()
        >>> x = core.design_matrix({"age": [30, 60], "smoker": [0, 1], "sex": ["male", "female"]})
        >>> core.posterior().predict_probability(x).round(2)
        array([0.4 , 0.63])
        """
        self._check_units()
        outcome = self.outcome or Outcome("logistic-regression", self.names)
        return predict_probability(outcome, self.mean, self.covariance, x)

    def predict_mean(self, x: Array) -> Array:
        """The posterior predictive mean of the target, ``(n,)``, for design rows ``x`` ``(n, p)``.

        It has the target's units: the expected count under Poisson and negative binomial regression, the expected
        target under linear and Student-t regression. These are exact for this normal distribution. Noise with 1 degree
        of freedom has no mean; the result is then the median. Under logistic and probit regression it is the
        probability of a 1.

        Raises ``InvalidArgument`` for a family without a mean to predict, without an ``outcome``, and if ``x`` is not a
        design matrix.

        >>> core = example("poisson-regression")
        >>> x = core.design_matrix({"age": [30, 60], "smoker": [0, 1], "sex": ["male", "female"]})
        >>> core.posterior().predict_mean(x).round(1)
        array([0.4, 2.6])
        """
        if self.outcome is None:
            raise InvalidArgument("This Gaussian has no model, so it predicts no mean; call core.laplace() for one.")
        self._check_units()
        return predict_mean(self.outcome, self.mean, self.covariance, x)

    def predict(self, x: Array | None = None, *, level: float = 0.95) -> Any:
        """Predictions for design rows ``x`` ``(n, p)``, as a table with one row each; for every family.

        Binary targets have ``probability``; counts, real and integer targets have ``mean``, in the target's units. Both
        have the interval ``low`` to ``high`` of the uncertainty about coefficients. It leaves out the scatter of single
        rows. Categorical targets have the most probable ``class``, and the probability of each category in columns such
        as ``probability=male``, without intervals. For ``gaussian-mean`` omit ``x``: the table has the mean of each
        column, in its units.

        >>> from corevault import example
        >>> core = example("poisson-regression")
        >>> x = core.design_matrix({"age": [30, 60], "smoker": [0, 1], "sex": ["male", "female"]})
        >>> core.posterior().predict(x).round(1).values.tolist()
        [[0.4, 0.4, 0.5], [2.6, 2.4, 2.8]]
        """
        if self.outcome is None:
            raise InvalidArgument("This Gaussian has no model, so it predicts nothing; use core.posterior().")
        if self.outcome.family == "gaussian-mean" and x is None:
            original = self.in_original_units()
            rows = [{name: row[name] for name in ("name", "mean", "low", "high")} for row in original.rows(level)]
            return make_table(rows, index="name")
        self._check_units()
        return make_table(predict_rows(self.outcome, self.mean, self.covariance, x, level))

    def _check_units(self) -> None:
        if self.units != "design":
            raise InvalidArgument("Predictions need the design's coordinates; predict with core.posterior() itself.")

    def with_noise(self, noise: "Gaussian") -> Self:
        """The sum of this variable and an independent error with the distribution ``noise``.

        Means and covariances add up. Raises ``InvalidArgument`` for other coefficients.

        >>> belief = Gaussian(("a", "b"), np.zeros(2), np.diag([1.0, 4.0]))
        >>> belief.with_noise(Gaussian(("a", "b"), np.zeros(2), 3.0 * np.eye(2))).sd.round(2)
        array([2.  , 2.65])
        """
        if noise.units != self.units:
            raise InvalidArgument("The noise has other units; add it before in_original_units().")
        if noise.names != self.names:
            raise InvalidArgument("The noise has other coefficients; pass the noise of the same release.")
        covariance = self.covariance + noise.covariance
        return replace(self, mean=self.mean + noise.mean, covariance=covariance, noise=noise.covariance)

    def with_outcome(self, outcome: Outcome) -> Self:
        """The same distribution, with the ``outcome`` of its model.

        >>> belief = Gaussian(("a", "b"), np.zeros(2), np.diag([1.0, 4.0]))
        >>> belief.with_outcome(example().posterior().outcome).names
        ('a', 'b')
        """
        return replace(self, outcome=outcome)


def from_precision(names: Sequence[str], mean: Array, root: tuple[Array, bool]) -> Gaussian:
    """A Gaussian from its mean and ``cho_factor`` of its precision."""
    covariance = cho_solve(root, np.eye(len(mean)))
    return Gaussian(tuple(names), mean, 0.5 * (covariance + covariance.T))
