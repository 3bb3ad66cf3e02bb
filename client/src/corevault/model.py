"""Requests of an analyst: models and mechanisms."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from corevault._arguments import describe, require_mapping
from corevault.errors import InvalidArgument, WrongType
from corevault.terms import list_columns

if TYPE_CHECKING:
    from corevault.schema import Schema


class ModelRequest(Protocol):
    """A model that a quote or a job can name."""

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request."""


@dataclass(frozen=True, kw_only=True)
class _OnColumns:
    """``features``, and a prior ``N(prior_mean, prior_scale²)`` on each coefficient of the design's columns.

    Features are names of columns, and terms such as ``interaction("age", "sex")`` or ``spline("age", df=4)``. The
    design maps the declared bounds to −1 and 1. With a ``prior_scale`` of 1, the predictor changes by about 2 from one
    bound to the other. The prior covers the intercept too. ``prior_scales`` override the scale by the name of a
    feature, a term, a design column or a parameter. ``prior_mean`` has the same names; other means are 0. With
    ``degrees_of_freedom`` all scales share one unknown factor.
    """

    family: ClassVar[str]

    features: list[Any] | tuple[str | Mapping[str, Any], ...]
    prior_scale: float = 1.0
    prior_scales: Mapping[str, float] | None = None
    degrees_of_freedom: float | None = None
    prior_mean: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        given: Any = self.features
        if isinstance(given, str):
            raise WrongType("features must be a list of column names, not one name.")
        if isinstance(given, set | frozenset | Mapping) or not isinstance(given, Sequence):
            raise WrongType(f"features must be a list of column names in a fixed order; {describe(given)}.")
        for feature in given:
            list_columns(feature)

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request.

        >>> LogisticRegression(features=["age", "sex"], target="sick").to_json()["features"]
        ['age', 'sex']
        """
        prior: dict[str, Any] = {"scale": self.prior_scale}
        if self.prior_scales:
            prior["scales"] = require_mapping(self.prior_scales, "prior_scales")
        if self.degrees_of_freedom is not None:
            prior["degrees_of_freedom"] = self.degrees_of_freedom
        if self.prior_mean:
            prior["mean"] = require_mapping(self.prior_mean, "prior_mean")
        body = {"family": self.family, "features": list(self.features), "prior": prior}
        optional = {
            name: getattr(self, name, None) for name in ("target", "noise_scale", "dispersion", "noise_covariance")
        }
        return body | {name: value for name, value in optional.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class _Regression(_OnColumns):
    """A model with a ``target``."""

    target: str

    @classmethod
    def formula(cls, formula: str, *, schema: "Schema | None" = None, **options: Any) -> Self:
        """The model of a formula, such as ``had ~ age + educ + C(occupation)``.

        The syntax is that of R and of Python's formula libraries. ``a:b`` is an interaction, and ``a * b`` is
        ``a + b + a:b``. ``poly(a, 3)`` is a polynomial. ``bs(a, df=4)`` and ``bs(a, knots=[30, 50])`` are cubic
        splines. Bounds and knots come from the declaration and the formula, never from rows. Transformations, codings
        and group-level effects are refused by name. ``C(column)`` has no effect: the declared type decides, and the
        first declared category is the reference. Each model has an intercept. ``options`` are the other arguments of
        the class.

        With ``schema``, the columns are compared with the declared ones, and ``C(column)`` with their types.

        >>> LogisticRegression.formula("had ~ age + C(occupation)", prior_scale=2.5).features
        ('age', 'occupation')
        >>> LogisticRegression.formula("had ~ bs(age, df=4) + age:sex").features
        ({'spline': 'age', 'df': 4}, {'interaction': ['age', 'sex']})

        Raises ``InvalidArgument`` with the name of a term that the server does not take, and ``MissingColumn``.
        """
        from corevault.formula import parse_formula  # noqa: PLC0415 - few models are written as formulas

        found = parse_formula(formula)
        if schema is not None:
            found.check(schema)
        if given := {"features", "target"} & options.keys():
            raise InvalidArgument(f"The formula states the {' and '.join(sorted(given))}; leave it out.")
        return cls(features=found.features, target=found.target, **options)


@dataclass(frozen=True, kw_only=True)
class LogisticRegression(_Regression):
    """Bayesian logistic regression of the binary ``target`` on ``features``.

    >>> LogisticRegression(features=["age", "sex"], target="sick").family
    'logistic-regression'
    """

    family: ClassVar[str] = "logistic-regression"


@dataclass(frozen=True, kw_only=True)
class ProbitRegression(_Regression):
    """Bayesian probit regression of the binary ``target`` on ``features``.

    >>> ProbitRegression(features=["age", "sex"], target="sick").family
    'probit-regression'
    """

    family: ClassVar[str] = "probit-regression"


@dataclass(frozen=True, kw_only=True)
class PoissonRegression(_Regression):
    """Bayesian Poisson regression of the integer ``target``, with a log link.

    The declared lower bound of ``target`` is 0 or more.

    >>> PoissonRegression(features=["age", "sex"], target="visits").family
    'poisson-regression'
    """

    family: ClassVar[str] = "poisson-regression"


@dataclass(frozen=True, kw_only=True)
class NegativeBinomialRegression(_Regression):
    """Bayesian negative binomial regression, for counts that vary more than Poisson counts.

    The link is the logarithm, and the declared lower bound of the integer ``target`` is 0 or more. Counts of mean m
    have the variance ``m + dispersion m²``. ``dispersion`` is from 0.001 to 1000; the server's default is 1.

    >>> NegativeBinomialRegression(features=["age", "sex"], target="visits", dispersion=0.5).family
    'negative-binomial-regression'
    """

    family: ClassVar[str] = "negative-binomial-regression"
    dispersion: float | None = None


@dataclass(frozen=True, kw_only=True)
class MultinomialLogistic(_Regression):
    """Bayesian multinomial logistic regression of the categorical ``target``.

    The first category of ``target`` is the reference.

    >>> MultinomialLogistic(features=["age", "sex"], target="ward").family
    'multinomial-logistic'
    """

    family: ClassVar[str] = "multinomial-logistic"


@dataclass(frozen=True, kw_only=True)
class LinearRegression(_Regression):
    """Bayesian linear regression of the real or integer ``target``. Its bounds map to −1 and 1.

    ``noise_scale`` is the standard deviation of the noise in the target's units. Without it the noise is unknown, and
    ``log_noise_scale`` is one more parameter.

    >>> LinearRegression(features=["age", "sex"], target="cost", noise_scale=10.0).family
    'linear-regression'
    """

    family: ClassVar[str] = "linear-regression"
    noise_scale: float | None = None


@dataclass(frozen=True, kw_only=True)
class StudentTRegression(_Regression):
    """Bayesian linear regression with Student-t noise, for targets with outliers.

    ``target`` is real or integer, and its bounds map to −1 and 1. ``noise_degrees_of_freedom`` is from 1, for the
    heaviest tails of the noise, to 100; the server's default is 4. ``noise_scale`` is the scale of the noise in the
    target's units. Without it the scale is unknown, and ``log_noise_scale`` is one more parameter.

    >>> StudentTRegression(features=["age", "sex"], target="cost", noise_degrees_of_freedom=5.0).family
    'student-t-regression'
    """

    family: ClassVar[str] = "student-t-regression"
    noise_scale: float | None = None
    noise_degrees_of_freedom: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request.

        >>> model = StudentTRegression(features=["age"], target="cost", noise_degrees_of_freedom=5.0)
        >>> model.to_json()["degrees_of_freedom"]
        5.0
        """
        degrees = self.noise_degrees_of_freedom
        return _OnColumns.to_json(self) | ({} if degrees is None else {"degrees_of_freedom": degrees})


@dataclass(frozen=True, kw_only=True)
class GaussianMean(_OnColumns):
    """The mean of real and integer ``features`` under normal noise.

    ``noise_scale`` is the standard deviation of the noise, by default 1. Instead of it, ``noise_covariance`` states the
    covariance of the noise by two names: ``{"age": {"age": 0.2, "cost": 0.1}, "cost": {"cost": 0.3}}``. A pair may be
    stated once, and others are 0. Mean and noise are in coordinates where the bounds are −1 and 1. The model has no
    target and no intercept.

    >>> GaussianMean(features=["age", "cost"], noise_scale=0.5).family
    'gaussian-mean'
    """

    family: ClassVar[str] = "gaussian-mean"
    noise_scale: float | None = None
    noise_covariance: Mapping[str, Mapping[str, float]] | None = None


@dataclass(frozen=True, kw_only=True)
class MultivariateNormal(_OnColumns):
    """The mean and the covariance of real and integer ``features``, for the method ``vips``.

    ``prior_scale`` is the prior standard deviation of a column, in coordinates where its bounds are −1 and 1. The
    release has a belief, which ``NormalTable`` reads, and no points.

    >>> MultivariateNormal(features=["age", "cost"]).family
    'gaussian'
    """

    family: ClassVar[str] = "gaussian"


@dataclass(frozen=True, kw_only=True)
class LatentDirichletAllocation:
    """Topics of documents, for the method ``vips``.

    Each row of the table is one word, in the categorical column ``words``. The privacy unit of the dataset is the
    column that names the document. ``topics`` is the number of topics, by default 20. Concentrations are parameters
    of Dirichlet priors, of a document's topics and of a topic's words. Below 1 they prefer few topics or words; the
    server's defaults are 0.1.

    >>> LatentDirichletAllocation(words="word", topics=10).to_json()
    {'family': 'latent-dirichlet-allocation', 'features': ['word'], 'topics': 10}
    """

    family: ClassVar[str] = "latent-dirichlet-allocation"

    words: str
    topics: int | None = None
    document_concentration: float | None = None
    topic_concentration: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request.

        >>> LatentDirichletAllocation(words="word", topic_concentration=0.5).to_json()["topic_concentration"]
        0.5
        """
        names = ("topics", "document_concentration", "topic_concentration")
        optional = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {"family": self.family, "features": [self.words]} | optional


@dataclass(frozen=True, kw_only=True)
class SigmoidBeliefNetwork:
    """The joint distribution of binary ``features``, for the method ``vips``.

    ``hidden_units`` is the number of hidden bits, by default 10. Biases have the prior ``N(0, prior_scale²)``. The
    release has a belief, and no points: ``client.releases.belief(release).network`` draws synthetic rows.

    >>> SigmoidBeliefNetwork(features=["smoker", "cough"], hidden_units=2).family
    'sigmoid-belief-network'
    """

    family: ClassVar[str] = "sigmoid-belief-network"

    features: list[str] | tuple[str, ...]
    hidden_units: int | None = None
    prior_scale: float = 1.0

    def to_json(self) -> dict[str, Any]:
        """The ``model`` member of the request.

        >>> SigmoidBeliefNetwork(features=["smoker", "cough"], hidden_units=2).to_json()["hidden_units"]
        2
        """
        body = _OnColumns(features=self.features, prior_scale=self.prior_scale)
        stated = {"family": self.family, "features": list(body.features), "prior": {"scale": self.prior_scale}}
        return stated | ({} if self.hidden_units is None else {"hidden_units": self.hidden_units})


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """The noise of a job, stated directly instead of calibrated from a target ε.

    >>> noise = Mechanism(noise_multiplier=20.0, sampling_rate=1.0, iterations=10)
    >>> client.quote("clinic", model, method="dp-psvi", size=20, mechanism=noise).affordable
    True
    """

    noise_multiplier: float
    sampling_rate: float
    iterations: int

    def to_json(self) -> dict[str, Any]:
        """The ``privacy`` member of the request.

        >>> Mechanism(noise_multiplier=2.0, sampling_rate=1.0, iterations=5).to_json()["iterations"]
        5
        """
        return {
            "noise_multiplier": self.noise_multiplier,
            "sampling_rate": self.sampling_rate,
            "iterations": self.iterations,
        }
