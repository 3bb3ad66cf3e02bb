"""Request and response bodies of quotes and jobs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from app.http.errors.validation_errors import CUSTOM
from app.http.requests.bodies import Body, ResponseBody
from app.inference import registry
from app.inference.core.plan import Mechanism, ModelSpec, PlanRequest, PriorSpec
from app.jobs.planning import Wish

MAX_FEATURES = 2000
Status = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=0)]

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
}
EXAMPLE_QUOTE: dict[str, Any] = {
    "cost": {"epsilon": 0.4999, "delta": 1e-6},
    "mechanism": {"noise_multiplier": 8.68, "sampling_rate": 1.0, "iterations": 28},
    "affordable": True,
    "epsilon_after": 0.61,
    "more_like_this": 4,
    "size": {"requested": 50, "smallest_exact": 5},
    "warnings": [],
}
EXAMPLE_JOB: dict[str, Any] = {
    "id": "job_01jd0000000000000000000000",
    "dataset_id": EXAMPLE_REQUEST["dataset_id"],
    "status": "running",
    "progress": {"fraction": 0.4, "stage": "running"},
    "cost": EXAMPLE_QUOTE["cost"],
    "release_id": None,
    "error": None,
    "method": EXAMPLE_REQUEST["method"],
    "size": EXAMPLE_REQUEST["size"],
    "model": EXAMPLE_REQUEST["model"],
    "parameters": {"rounds": 12},
    "mechanism": EXAMPLE_QUOTE["mechanism"],
    "cancel_requested": False,
    "settlement": None,
    "created_at": "2030-01-31T12:00:00Z",
    "started_at": "2030-01-31T12:00:01Z",
    "ended_at": None,
}


class PriorBody(Body):
    """An independent normal prior ``N(0, scale**2)`` on each coefficient.

    ``scales`` override ``scale`` by the name of a design column, a feature or a parameter. With
    ``degrees_of_freedom`` all scales share one unknown factor, which gives a multivariate t prior.
    """

    scale: Positive = 1.0
    """Standard deviation of each coefficient."""
    scales: Annotated[dict[Name, Positive], Field(max_length=MAX_FEATURES)] | None = None
    """Standard deviations that replace `scale`, by name of a design column, a feature or a parameter."""
    degrees_of_freedom: Positive | None = None
    """Degrees of freedom of a multivariate t prior: all scales share one unknown factor. Null: a normal prior."""

    def spec(self) -> PriorSpec:
        """Convert this body to the core's type."""
        return PriorSpec(self.scale, self.scales or {}, self.degrees_of_freedom)


class ModelBody(Body):
    """A model over declared columns.

    ``noise_scale`` is for models with known noise, in the units of the target. ``degrees_of_freedom`` describe
    Student-t noise, not the prior.
    """

    family: Name
    """Name of the model family; `GET /v1/methods` lists them."""
    features: Annotated[list[Name], Field(min_length=1, max_length=MAX_FEATURES)]
    """Names of the feature columns."""
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

    def spec(self) -> ModelSpec:
        """Convert this body to the core's type."""
        return ModelSpec(
            self.family,
            tuple(self.features),
            self.target,
            self.prior.spec(),
            self.noise_scale,
            self.degrees_of_freedom,
            self.dispersion,
        )


class PrivacyBody(Body):
    """A target (``epsilon``, at the dataset's delta) or a mechanism (the other three members).

    ``iterations`` is the number of queries. Some methods, such as ``dp-psvi-surrogate``, give their queries different
    amounts of noise. For these, ``noise_multiplier`` describes one Gaussian mechanism over all slots with the same
    total cost.
    """

    epsilon: Annotated[float, Field(gt=0)] | None = None
    """Target cost of the job alone, at the dataset's delta. The noise is calibrated to it."""
    noise_multiplier: Annotated[float, Field(gt=0)] | None = None
    """Standard deviation of the noise, divided by the clipping norm.

    For a method whose queries have different noise, it is the noise multiplier of one full-batch Gaussian query with
    the same total cost.
    """
    sampling_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    """Probability with which each slot enters a subsample."""
    iterations: Annotated[int, Field(ge=1)] | None = None
    """Number of queries."""

    @model_validator(mode="after")
    def _one_of_two(self) -> "PrivacyBody":
        knobs = [self.noise_multiplier, self.sampling_rate, self.iterations]
        named = sum(knob is not None for knob in knobs)
        if named != (3 if self.epsilon is None else 0):
            message = "Give either epsilon alone, or all of noise_multiplier, sampling_rate and iterations."
            raise PydanticCustomError(CUSTOM, message)
        return self

    @property
    def mechanism(self) -> Mechanism | None:
        if self.noise_multiplier is None or self.sampling_rate is None or self.iterations is None:
            return None
        return Mechanism(self.noise_multiplier, self.sampling_rate, self.iterations)


class JobBody(Body):
    """A request for a quote or a job: dataset, method, model and privacy; it has no seed.

    ``GET /v1/methods`` lists the methods, their parameters and the default method.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_REQUEST]})

    dataset_id: Name
    """Id of the dataset."""
    method: Name = registry.DEFAULT
    """Id of the method; `GET /v1/methods` lists them."""
    size: Annotated[int, Field(ge=1)]
    """Number of pseudopoints."""
    model: ModelBody
    """The model."""
    privacy: PrivacyBody | None = None
    """Target or mechanism; null only for methods that are not private."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Parameters of the method; `GET /v1/methods` publishes their JSON Schema."""

    def wish(self) -> Wish:
        """Convert this body to the core's type."""
        mechanism = None if self.privacy is None else self.privacy.mechanism
        request = PlanRequest(self.method, self.size, self.model.spec(), self.parameters, mechanism)
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
    """The requested size, and the smallest size that can represent the model's posterior."""

    requested: int
    """Requested number of pseudopoints."""
    smallest_exact: int
    """Smallest number of pseudopoints that can represent a posterior of the model."""


class QuoteView(ResponseBody):
    """A price; the members about its cost are null for public data."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_QUOTE]})

    cost: Cost | None
    """Privacy cost of the job alone."""
    mechanism: MechanismView | None
    """Mechanism that the job would use; null for methods without noise."""
    affordable: bool
    """Whether the account would admit the job now."""
    epsilon_after: float | None
    """Composed cost of the account after the job."""
    more_like_this: int | None
    """Number of further identical jobs that the account would admit after this one."""
    size: QuoteSize
    """Requested and needed number of pseudopoints."""
    warnings: list[str]
    """Warnings about the request, in plain words."""


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
