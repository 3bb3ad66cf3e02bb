"""Requests of analysts, and plans: runs with their price, fixed before the first row is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from app.inference.core.designs import Feature, make_term
from app.privacy.events import AtomicEvent, NonPrivateEvent, PrivacyEvent, encode

GROUPS: Final = "groups"
"""The parameter that names the columns whose values make groups of rows."""


@dataclass(frozen=True, slots=True)
class PriorSpec:
    """A normal prior with a mean and a scale per coefficient; see :mod:`app.inference.core.priors`.

    ``scales`` override ``scale``, and ``mean`` overrides 0, by the name of a design column, a feature, a term or a
    parameter. With ``degrees_of_freedom`` the scales share one unknown factor. All are in the design's coordinates.
    """

    scale: float = 1.0
    scales: Mapping[str, float] = field(default_factory=dict)
    degrees_of_freedom: float | None = None
    mean: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """The model of a request. ``features`` are names of columns, and terms.

    Families that take them: ``noise_scale`` is the scale of the noise, in the target's units. ``degrees_of_freedom`` is
    how heavy its tails are, and ``dispersion`` how much counts vary. ``topics``, ``document_concentration`` and
    ``topic_concentration`` belong to topic models, ``hidden_units`` to belief networks. ``noise_covariance`` is the
    covariance of the noise of several features, by two names; it replaces ``noise_scale``. None: the family's default.
    """

    family: str
    features: tuple[Feature, ...]
    target: str | None
    prior: PriorSpec = PriorSpec()
    noise_scale: float | None = None
    degrees_of_freedom: float | None = None
    dispersion: float | None = None
    topics: int | None = None
    document_concentration: float | None = None
    topic_concentration: float | None = None
    hidden_units: int | None = None
    noise_covariance: Mapping[str, Mapping[str, float]] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The declared columns that the model reads, each once: its features' columns and its target."""
        places = (place for feature in self.features for place in make_term(feature).places)
        names = [name for _, name in places] + ([] if self.target is None else [self.target])
        return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class Mechanism:
    """The parameters of a subsampled Gaussian mechanism, fixed before any row is read."""

    noise_multiplier: float
    sampling_rate: float
    iterations: int


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """The request of an analyst; a private method needs ``mechanism`` or ``noise_multiplier``.

    ``mechanism`` is stated by the caller. ``noise_multiplier`` comes from calibration to a target epsilon; the method
    then chooses sampling rate and iterations, or takes them from ``parameters``. ``size`` is the number of points.
    """

    method: str
    size: int
    model: ModelSpec
    parameters: Mapping[str, Any] = field(default_factory=dict)
    mechanism: Mechanism | None = None
    noise_multiplier: float | None = None


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """One kind of query, asked ``count`` times in a row.

    ``length`` is the number of values in an answer; a symmetric D x D matrix counts D**2.
    """

    kind: str
    length: int
    event: AtomicEvent
    count: int = 1


@dataclass(frozen=True, slots=True)
class MechanismPlan:
    """A run that is fixed beforehand: sampling, clipping, noise and, through its events, the price.

    For a method with several noises, ``mechanism`` holds the noise multiplier of one Gaussian with the same price, and
    the number of queries.
    """

    method: str
    size: int
    model: ModelSpec
    parameters: Mapping[str, Any]
    mechanism: Mechanism | None  # None for methods without a mechanism (public data only)
    clipping: str  # the rule in words, for the certificate
    grid_bits: int  # K = 2**grid_bits
    queries: tuple[PlannedQuery, ...]  # in order; none for methods that read the rows themselves
    steps: int  # planned steps, for progress
    warnings: tuple[str, ...] = field(default=())

    @property
    def columns(self) -> tuple[str, ...]:
        """The declared columns that the run reads, each once: the model's, and the columns that make groups."""
        return tuple(dict.fromkeys((*self.model.columns, *self.parameters.get(GROUPS, ()))))

    @property
    def events(self) -> tuple[PrivacyEvent, ...]:
        """The queries' events in order, run-length encoded; without queries, one non-private event."""
        if not self.queries:
            return (NonPrivateEvent(),)
        return encode((query.event, query.count) for query in self.queries)

    @property
    def answer_length(self) -> int:
        """The largest length of an answer."""
        return max((query.length for query in self.queries), default=0)
