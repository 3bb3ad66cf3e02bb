"""Request and response bodies of quotes and jobs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from app.auth.schemas import KeyReference
from app.http.errors.validation_errors import CUSTOM
from app.http.requests.bodies import Body, ResponseBody
from app.inference import registry
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest, PriorSpec
from app.jobs.features import FeatureBody, Name, make_feature
from app.jobs.planning import Wish

MAX_FEATURES = 2000
MAX_PURPOSE = 200
Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Parameter = Annotated[str, Field(min_length=1, max_length=2000)]
Positive = Annotated[float, Field(gt=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]

EXAMPLE_REQUEST: dict[str, Any] = {
    "dataset_id": "ds_01jd0000000000000000000000",
    "method": registry.DEFAULT,
    "size": 50,
    "model": {
        "family": "logistic-regression",
        "features": ["age", "hours", "sex"],
        "target": "income_gt_50k",
        "prior": {"scale": 1.0},
    },
    "privacy": {"epsilon": 0.5},
    "parameters": {},
    "purpose": "Table 2 of the income study",
}
EXAMPLE_COST = {"epsilon": 0.4999, "delta": 1e-6}
EXAMPLE_MECHANISM = {"noise_multiplier": 8.68, "sampling_rate": 1.0, "iterations": 28}
EXAMPLE_QUOTE: dict[str, Any] = {
    "cost": EXAMPLE_COST,
    "mechanism": EXAMPLE_MECHANISM,
    "affordable": True,
    "reason": None,
    "epsilon_after": 0.61,
    "more_like_this": 4,
    "size": {"requested": 50, "smallest_exact": 5},
    "warnings": [],
    "expected_accuracy": {
        "interval_widening": {"age": 1.06, "hours": 1.05, "sex=Male": 1.08, "intercept": 1.07},
        "interval_widening_range": {
            "age": [1.0, 3.3],
            "hours": [1.0, 3.13],
            "sex=Male": [1.0, 3.74],
            "intercept": [1.0, 3.56],
        },
        "noise_in_posterior_sds": {"age": 0.35, "hours": 0.33, "sex=Male": 0.4, "intercept": 0.38},
        "assumes": "Every slot holds a row, and rows are simulated from the declaration: …",
    },
}
EXAMPLE_JOB: dict[str, Any] = {
    "id": "job_01jd0000000000000000000000",
    "dataset_id": EXAMPLE_REQUEST["dataset_id"],
    "dataset_name": "adult",
    "submitted_by": {"id": "key_01jd0000000000000000000000", "name": "Income study"},
    "purpose": EXAMPLE_REQUEST["purpose"],
    "status": "running",
    "progress": {"fraction": 0.4, "stage": "running"},
    "cost": EXAMPLE_COST,
    "release_id": None,
    "error": None,
    "method": EXAMPLE_REQUEST["method"],
    "size": EXAMPLE_REQUEST["size"],
    "model": EXAMPLE_REQUEST["model"],
    "parameters": {"rounds": 12},
    "mechanism": EXAMPLE_MECHANISM,
    "cancel_requested": False,
    "settlement": None,
    "created_at": "2030-01-31T12:00:00Z",
    "started_at": "2030-01-31T12:00:01Z",
    "ended_at": None,
}


class PriorBody(Body):
    """An independent normal prior ``N(mean, scale**2)`` on each coefficient.

    ``scales`` override ``scale``, and ``mean`` overrides 0, by the name of a design column, a feature, a term or a
    parameter. With ``degrees_of_freedom`` all scales share one unknown factor, which gives a multivariate t prior.
    """

    scale: Positive = 1.0
    """Standard deviation of each coefficient."""
    scales: Annotated[dict[Parameter, Positive], Field(max_length=MAX_FEATURES)] | None = None
    """Standard deviations that replace `scale`, by name of a design column, a feature, a term or a parameter."""
    degrees_of_freedom: Positive | None = None
    """Degrees of freedom of a multivariate t prior: all scales share one unknown factor. Null: a normal prior."""
    mean: Annotated[dict[Parameter, Finite], Field(max_length=MAX_FEATURES)] | None = None
    """Prior means, by name of a design column, a feature, a term or a parameter, -100 to 100. Others are 0."""

    def spec(self) -> PriorSpec:
        """Convert this body to the core's type."""
        return PriorSpec(self.scale, self.scales or {}, self.degrees_of_freedom, self.mean or {})


class ModelBody(Body):
    """A model over declared columns.

    ``noise_scale`` is for models with known noise, in the units of the target. ``degrees_of_freedom`` describe
    Student-t noise, not the prior.
    """

    family: Name
    """Name of the model family; `GET /v1/methods` lists them."""
    features: Annotated[list[FeatureBody], Field(min_length=1, max_length=MAX_FEATURES)]
    """Names of columns, and at most 500 terms: interactions, polynomials, splines, Fourier features, networks."""
    target: Name | None = None
    """Name of the target column; null for families without a target."""
    prior: PriorBody = PriorBody()
    """Prior of the coefficients."""
    noise_scale: Positive | None = None
    """Known standard deviation of the noise, in the units of the target; only for families that accept it."""
    degrees_of_freedom: Positive | None = None
    """Degrees of freedom of Student-t noise, 1 to 100; null: 4. Only for families that accept them."""
    dispersion: Positive | None = None
    """Dispersion of negative binomial counts, 0.001 to 1000; null: 1. Only for families that accept it."""
    topics: Annotated[int, Field(ge=1)] | None = None
    """Number of topics; null: the family's default. Only for families that accept it."""
    document_concentration: Positive | None = None
    """Concentration of the Dirichlet prior of a document's topics. Only for families that accept it."""
    topic_concentration: Positive | None = None
    """Concentration of the Dirichlet prior of a topic's words. Only for families that accept it."""
    hidden_units: Annotated[int, Field(ge=1)] | None = None
    """Number of hidden units of a belief network; null: the family's default. Only for families that accept it."""

    noise_covariance: Annotated[dict[Name, dict[Name, float]], Field(max_length=MAX_FEATURES)] | None = None
    """Covariance of the noise by two names of features, instead of `noise_scale`; only for families that accept it.

    A pair may be stated once, and others are 0.
    """

    def spec(self) -> ModelSpec:
        """Convert this body to the core's type."""
        return ModelSpec(
            self.family,
            tuple(map(make_feature, self.features)),
            self.target,
            self.prior.spec(),
            self.noise_scale,
            self.degrees_of_freedom,
            self.dispersion,
            self.topics,
            self.document_concentration,
            self.topic_concentration,
            self.hidden_units,
            self.noise_covariance,
        )


class MechanismBody(Body):
    """The members of a stated mechanism."""

    noise_multiplier: Annotated[float, Field(gt=0)] | None = None
    """Standard deviation of the noise, divided by the clipping norm.

    For a method whose queries have different noise, it is the noise multiplier of one full-batch Gaussian query with
    the same total cost.
    """
    sampling_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    """Probability with which each slot enters a subsample."""
    iterations: Annotated[int, Field(ge=1)] | None = None
    """Number of queries."""

    @property
    def mechanism(self) -> Mechanism | None:
        if self.noise_multiplier is None or self.sampling_rate is None or self.iterations is None:
            return None
        return Mechanism(self.noise_multiplier, self.sampling_rate, self.iterations)

    def check_choice(self, *, has_target: bool) -> None:
        knobs = [self.noise_multiplier, self.sampling_rate, self.iterations]
        if sum(knob is not None for knob in knobs) != (0 if has_target else 3):
            message = "Give either epsilon alone, or all of noise_multiplier, sampling_rate and iterations."
            raise PydanticCustomError(CUSTOM, message)


class PrivacyBody(MechanismBody):
    """A target (``epsilon``, at the dataset's delta) or a mechanism (the other three members).

    ``iterations`` is the number of queries. Some methods, such as ``dp-psvi-surrogate``, give their queries different
    amounts of noise. For these, ``noise_multiplier`` describes one Gaussian mechanism over all slots with the same
    total cost.
    """

    epsilon: Positive | None = None
    """Target cost of the job alone, at the dataset's delta. The noise is calibrated to it."""

    @model_validator(mode="after")
    def _one_of_two(self) -> "PrivacyBody":
        self.check_choice(has_target=self.epsilon is not None)
        return self


class RequestBody(Body):
    """The members that quotes and jobs share."""

    dataset_id: Name
    """Id of the dataset."""
    method: Name = registry.DEFAULT
    """Id of the method; `GET /v1/methods` lists them."""
    size: Annotated[int, Field(ge=1)] | None = None
    """Number of pseudopoints; null: the smallest that can represent the model's posterior, but at least 20.

    For `dp-groups` it is the largest number of groups with a weight."""
    model: ModelBody
    """The model."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Parameters of the method; `GET /v1/methods` publishes their JSON Schema."""
    purpose: Annotated[str, Field(min_length=1, max_length=MAX_PURPOSE)] | None = None
    """Why the job is run, in one line of printable text; null: not stated.

    The key that submits the job, the dataset's owner, auditors and administrators see it. Releases do not contain it.
    """


class JobBody(RequestBody):
    """A request for a job: dataset, method, model and privacy; it has no seed.

    ``GET /v1/methods`` lists the methods, their parameters and the default method.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_REQUEST]})

    privacy: PrivacyBody | None = None
    """Target or mechanism; null only for methods that are not private."""

    def wish(self, usual_size: int = registry.USUAL_SIZE) -> Wish:
        """Convert this body to the core's type. A job without a stated size has ``usual_size`` points."""
        mechanism = None if self.privacy is None else self.privacy.mechanism
        size = usual_size if self.size is None else self.size
        request = PlanRequest(self.method, size, self.model.spec(), self.parameters, mechanism)
        return Wish(request, None if self.privacy is None else self.privacy.epsilon)


class Cost(ResponseBody):
    """A composed privacy cost, from the accountant."""

    epsilon: float
    """Epsilon of differential privacy, at the delta below."""
    delta: float
    """Delta of differential privacy."""


class MechanismView(ResponseBody):
    """A subsampled Gaussian mechanism.

    ``iterations`` is the number of queries. If they have different amounts of noise, ``noise_multiplier`` describes
    one query with the same total cost.
    """

    noise_multiplier: float
    """Standard deviation of the noise, divided by the clipping norm.

    For a method whose queries have different noise, it is the noise multiplier of one full-batch Gaussian query with
    the same total cost.
    """
    sampling_rate: float
    """Probability with which each slot enters a subsample."""
    iterations: int
    """Number of queries."""


class QuoteSize(ResponseBody):
    """The job's size, and the smallest one that can represent the posterior."""

    requested: int
    """Number of pseudopoints of the job: as requested, or the default."""
    smallest_exact: int
    """Smallest number of pseudopoints that can represent a posterior of the model."""


class ExpectedAccuracyView(ResponseBody):
    """An estimate from the request and the declaration alone, by name of the parameter."""

    interval_widening: dict[str, float]
    """Factor by which 95 % intervals are wider than without noise."""
    interval_widening_range: dict[str, tuple[float, float]]
    """Lowest and highest factor to expect. About nine of ten parameters of calibrated test releases are in between."""
    noise_in_posterior_sds: dict[str, float]
    """Standard deviation of the noise in the posterior's mean, over that of the posterior."""
    assumes: str
    """Assumptions of the estimate, in words."""


class QuoteView(ResponseBody):
    """A price; the members about its cost are null for public data."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_QUOTE]})

    cost: Cost | None
    """Privacy cost of the job alone."""
    mechanism: MechanismView | None
    """Mechanism that the job would use; null for methods without noise."""
    affordable: bool
    """Whether the account would admit the job now."""
    reason: Literal["frozen", "limit", "cap", "allocation"] | None
    """Why the account would not admit it; null if it would.

    `frozen`: the account is frozen. `limit`: it would exceed the limit of the population. `cap`: the limit of this
    dataset. `allocation`: the part of the budget that the caller may spend. If several apply, the first one is stated.
    """
    epsilon_after: float | None
    """Composed cost of the account after the job."""
    more_like_this: int | None
    """Number of further identical jobs that the account would admit after this one."""
    size: QuoteSize
    """Requested and needed number of pseudopoints."""
    warnings: list[str]
    """Warnings about the request, in plain words."""
    expected_accuracy: ExpectedAccuracyView | None = None
    """Expected accuracy of the release; null if the request does not ask for it, or if a warning states why not."""


class Progress(ResponseBody):
    """The progress of a job; ``fraction`` is the share of planned steps that are done."""

    fraction: float
    """Share of the planned steps that are done, from 0 to 1."""
    stage: str
    """`queued`, `preparing`, `running`, `publishing` or `ended`."""


class ErrorView(ResponseBody):
    """Why a job failed."""

    code: Literal["run_failed", "interrupted", "dataset_deleted"]
    """`run_failed`: an error in the run. `interrupted`: its workers were lost. `dataset_deleted`: no data is left."""


class Settlement(ResponseBody):
    """The charge of an ended job, and the reason: the full price or nothing."""

    charged: Cost
    """Cost that was charged."""
    reason: str
    """Reason for the charge, in plain words."""


class JobView(ResponseBody):
    """A job as its caller, the dataset's owner and auditors see it."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_JOB]})

    id: str
    """Id of the job."""
    dataset_id: str
    """Id of the dataset."""
    dataset_name: str | None
    """Name of the dataset; null if the caller may not see the dataset any more."""
    submitted_by: KeyReference
    """The key that submitted the job."""
    purpose: str | None
    """Why the job is run, as its submitter stated it; null if not stated."""
    status: Status
    """State of the job."""
    progress: Progress
    """Progress of the job."""
    cost: Cost | None
    """Privacy cost that is reserved or charged; null on public data."""
    release_id: str | None
    """Id of the release; null unless the job has succeeded."""
    error: ErrorView | None
    """Reason of the failure; null unless the job has failed."""
    method: str
    """Id of the method."""
    size: int
    """Number of pseudopoints."""
    model: dict[str, Any]
    """The model: family, features, target and prior."""
    parameters: dict[str, Any]
    """Parameters of the method, with their defaults."""
    mechanism: MechanismView | None
    """Mechanism of the run; null for methods without noise."""
    cancel_requested: bool
    """Whether someone asked to cancel the job."""
    settlement: Settlement | None
    """Final charge; null until the job has ended, and on public data."""
    created_at: datetime
    """Time of submission."""
    started_at: datetime | None
    """Time of the first claim by a worker; null if not started."""
    ended_at: datetime | None
    """Time at which the job ended; null if it has not."""
