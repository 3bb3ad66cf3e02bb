"""Request and response bodies of quotes."""

from typing import Annotated, Any

from pydantic import ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from app.http.errors.validation_errors import CUSTOM
from app.http.requests.bodies import ResponseBody
from app.jobs.schemas import (
    EXAMPLE_QUOTE,
    EXAMPLE_REQUEST,
    JobBody,
    MechanismBody,
    Positive,
    PrivacyBody,
    QuoteView,
    RequestBody,
)

MAX_QUOTES = 20
MAX_ESTIMATES = 4
REQUESTS_OF_AN_ESTIMATE = 20
EXAMPLE_QUOTE_REQUEST: dict[str, Any] = {
    **{name: value for name, value in EXAMPLE_REQUEST.items() if name not in {"size", "purpose"}},
    "privacy": {"epsilon": [0.1, 0.5, 1.0]},
}


def _name_kind(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


class QuotedPrivacyBody(MechanismBody):
    """As the privacy of a job; ``epsilon`` may also be a list of targets."""

    epsilon: (
        Annotated[
            Annotated[Positive, Tag("one")]
            | Annotated[list[Positive], Field(min_length=1, max_length=MAX_QUOTES), Tag("several")],
            Discriminator(_name_kind),
        ]
        | None
    ) = None
    """Target cost of the job alone, at the dataset's delta; or up to 20 targets, for one quote each."""

    @model_validator(mode="after")
    def _one_of_two(self) -> "QuotedPrivacyBody":
        self.check_choice(has_target=self.epsilon is not None)
        return self

    def split(self) -> list[PrivacyBody]:
        """Make one body for each target, or for the mechanism."""
        if self.epsilon is None:
            return [PrivacyBody.model_validate(self.model_dump(exclude={"epsilon"}))]
        targets = self.epsilon if isinstance(self.epsilon, list) else [self.epsilon]
        return [PrivacyBody(epsilon=target) for target in targets]


class QuoteBody(RequestBody):
    """A request for one quote, or for quotes at several epsilons."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE_QUOTE_REQUEST]})

    privacy: QuotedPrivacyBody | None = None
    """Target, targets or mechanism; null only for methods that are not private."""
    expected_accuracy: bool = False
    """Whether to estimate the accuracy of the release, for at most 4 targets.

    This takes about a second for each. Each estimate counts as 20 requests of the key's rate limit.
    """

    @model_validator(mode="after")
    def _few_estimates(self) -> "QuoteBody":
        if self.expected_accuracy and self.targets > MAX_ESTIMATES:
            raise PydanticCustomError(CUSTOM, f"Ask for the accuracy of at most {MAX_ESTIMATES} targets at once.")
        return self

    @property
    def is_list(self) -> bool:
        """Whether the answer is a list."""
        return self.privacy is not None and isinstance(self.privacy.epsilon, list)

    @property
    def targets(self) -> int:
        """The number of quotes in the answer."""
        epsilon = None if self.privacy is None else self.privacy.epsilon
        return len(epsilon) if isinstance(epsilon, list) else 1

    @property
    def requests(self) -> int:
        """The number of requests that this one counts as."""
        return self.targets * (REQUESTS_OF_AN_ESTIMATE if self.expected_accuracy else 1)

    def split(self) -> list[JobBody]:
        """Make the jobs to quote, in order."""
        shared = {name: getattr(self, name) for name in RequestBody.model_fields}
        targets: list[PrivacyBody | None] = [None] if self.privacy is None else [*self.privacy.split()]
        return [JobBody(**shared, privacy=target) for target in targets]


class QuoteList(ResponseBody):
    """Quotes of one job at several targets."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"quotes": [EXAMPLE_QUOTE]}]})

    quotes: list[QuoteView]
    """One quote for each target, in the order of the request. Each is for a job alone, not after the others."""
