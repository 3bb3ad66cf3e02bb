"""Bodies of quotes and jobs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from app.http.errors.validation_errors import CUSTOM
from app.http.requests.bodies import Body
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
    """``N(0, scale**2)`` on each coefficient, independently.

    ``scales`` override ``scale`` by the name of a design column, a feature or a parameter. With
    ``degrees_of_freedom`` all scales share one unknown factor: a multivariate t prior.
    """

    scale: Positive = 1.0
    scales: Annotated[dict[Name, Positive], Field(max_length=MAX_FEATURES)] | None = None
    degrees_of_freedom: Positive | None = None

    def spec(self) -> PriorSpec:
        """The same in the core's words."""
        return PriorSpec(self.scale, self.scales or {}, self.degrees_of_freedom)


class ModelBody(Body):
    """A model over declared columns. ``noise_scale`` is for models with known noise, in the target's own units."""

    family: Name
    features: Annotated[list[Name], Field(min_length=1, max_length=MAX_FEATURES)]
    target: Name | None = None
    prior: PriorBody = PriorBody()
    noise_scale: Positive | None = None

    def spec(self) -> ModelSpec:
        """The same in the core's words."""
        return ModelSpec(self.family, tuple(self.features), self.target, self.prior.spec(), self.noise_scale)


class PrivacyBody(Body):
    """A target (``epsilon``, at the dataset's delta) or a mechanism (the other three).

    ``iterations`` is the number of queries. Where a method asks them at several noises, as ``dp-psvi-surrogate``
    does, ``noise_multiplier`` is that of one Gaussian over all slots that would cost what they cost together.
    """

    epsilon: Annotated[float, Field(gt=0)] | None = None
    noise_multiplier: Annotated[float, Field(gt=0)] | None = None
    sampling_rate: Annotated[float, Field(gt=0, le=1)] | None = None
    iterations: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _one_of_two(self) -> "PrivacyBody":
        knobs = [self.noise_multiplier, self.sampling_rate, self.iterations]
        named = sum(knob is not None for knob in knobs)
        if named != (3 if self.epsilon is None else 0):
            message = "Name epsilon alone, or noise_multiplier, sampling_rate and iterations."
            raise PydanticCustomError(CUSTOM, message)
        return self

    @property
    def mechanism(self) -> Mechanism | None:
        if self.noise_multiplier is None or self.sampling_rate is None or self.iterations is None:
            return None
        return Mechanism(self.noise_multiplier, self.sampling_rate, self.iterations)


class JobBody(Body):
    """What to build, from which dataset, at which price. Quotes and jobs take the same body; none has a seed.

    ``GET /v1/methods`` says what each ``method`` takes, and which one this is by default.
    """

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_REQUEST]})

    dataset_id: Name
    method: Name = registry.DEFAULT
    size: Annotated[int, Field(ge=1)]
    model: ModelBody
    privacy: PrivacyBody | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)

    def wish(self) -> Wish:
        """The same in the core's words."""
        mechanism = None if self.privacy is None else self.privacy.mechanism
        request = PlanRequest(self.method, self.size, self.model.spec(), self.parameters, mechanism)
        return Wish(request, None if self.privacy is None else self.privacy.epsilon)


class Cost(BaseModel):
    """Composed cost, by the moments accountant."""

    epsilon: float
    delta: float


class MechanismView(BaseModel):
    """A subsampled Gaussian mechanism.

    ``iterations`` is the number of queries; of several noises, ``noise_multiplier`` states the one that a single
    query with the price of all would have.
    """

    noise_multiplier: float
    sampling_rate: float
    iterations: int


class QuoteSize(BaseModel):
    """``smallest_exact``: the least size that can represent the model's posterior."""

    requested: int
    smallest_exact: int


class QuoteView(BaseModel):
    """A price; ``cost`` and what follows from it are null for public data."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_QUOTE]})

    cost: Cost | None
    mechanism: MechanismView | None
    affordable: bool
    epsilon_after: float | None
    more_like_this: int | None
    size: QuoteSize
    warnings: list[str]


class Progress(BaseModel):
    """``fraction`` counts planned steps only."""

    fraction: float
    stage: str


class ErrorView(BaseModel):
    code: Literal["run_failed", "interrupted", "dataset_deleted"]


class Settlement(BaseModel):
    """What an ended job has cost, and why: the whole price or nothing."""

    charged: Cost
    reason: str


class JobView(BaseModel):
    """A job as its caller, the dataset's owner and auditors see it."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_JOB]})

    id: str
    dataset_id: str
    status: Status
    progress: Progress
    cost: Cost | None
    release_id: str | None
    error: ErrorView | None
    method: str
    size: int
    model: dict[str, Any]
    parameters: dict[str, Any]
    mechanism: MechanismView | None
    cancel_requested: bool
    settlement: Settlement | None
    """Null until the job has ended, and on public data."""
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
