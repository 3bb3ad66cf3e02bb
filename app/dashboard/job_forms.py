"""The form of a job: from its fields to the request of the API, and from faults to its fields."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from app.dashboard.forms import Form, Mistakes
from app.dashboard.job_terms import NotRead, read_numbers, read_terms
from app.dashboard.wording import count_noun, format_number
from app.errors import BudgetExceeded, CorevaultError, InvalidRequest, RateLimited
from app.http.errors.problems import RETRY_AFTER_SECONDS
from app.http.requests.bodies import validate
from app.inference import registry
from app.inference.core.designs import feature_to_json
from app.jobs.accuracy_targets import POINTER
from app.jobs.schemas import JobBody

FIELDS: Final = (
    *("dataset_id", "family", "target", "goal", "widening", "epsilon", "prior_scale", "size", "purpose"),
    *("terms", "prior_means", "prior_scales"),
)
"""The fields with one value. ``features`` has several."""
Read = TypeVar("Read")
_NUMBER: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{0,12})?|\.[0-9]{1,12}", re.ASCII)
_BUSY: Final = (
    "The server cannot estimate the accuracy now. Wait {} and show the price again, or choose the cost instead."
)
_BEYOND: Final = (
    "The budget does not cover this job. The largest job left costs about ε {}. Ask for a smaller ε, or ask the "
    "owner for more budget."
)
_FEATURE: Final = re.compile(r"/model/features/([0-9]{1,6})", re.ASCII)
ENTER_NUMBER: Final = "Enter a number with a decimal point, as in 0.5."
_OF_POINTERS: Final = (
    ("/model/family", "family"),
    ("/model/target", "target"),
    ("/model/features", "features"),
    ("/model/prior/mean", "prior_means"),
    ("/model/prior/scales", "prior_scales"),
    ("/model/prior", "prior_scale"),
    ("/size", "size"),
    (POINTER, "widening"),
    ("/privacy", "epsilon"),
    ("/purpose", "purpose"),
)
"""Start of a JSON pointer -> the field that shows the fault."""
_MODELS: Final[Mapping[str, str]] = {
    "logistic-regression": "LogisticRegression",
    "probit-regression": "ProbitRegression",
    "linear-regression": "LinearRegression",
    "student-t-regression": "StudentTRegression",
    "poisson-regression": "PoissonRegression",
    "negative-binomial-regression": "NegativeBinomialRegression",
    "multinomial-logistic": "MultinomialLogistic",
    "gaussian-mean": "GaussianMean",
}
"""Family -> class of the client."""


@dataclass(frozen=True, slots=True)
class JobForm:
    """The fields of a job as they were typed."""

    dataset_id: str
    family: str = "logistic-regression"
    target: str = ""
    features: tuple[str, ...] = ()
    prior_scale: str = "1"
    size: str = ""
    goal: str = "widening"
    widening: str = "1.2"
    epsilon: str = "0.5"
    purpose: str = ""
    terms: str = ""
    prior_means: str = ""
    prior_scales: str = ""

    @property
    def is_by_widening(self) -> bool:
        """Whether the cost follows from a wanted widening; otherwise it is stated."""
        return self.goal == "widening"

    @property
    def has_more(self) -> bool:
        """Whether a field of the part that is closed at first has a text."""
        return bool(self.terms or self.prior_means or self.prior_scales)

    @classmethod
    def read(cls, form: Form) -> "JobForm":
        return cls(features=tuple(form.several("features")), **{name: form.text(name) for name in FIELDS})

    def make_document(self) -> tuple[dict[str, Any], Mistakes]:
        """Make the request of the API; numbers that cannot be read are mistakes."""
        mistakes = Mistakes()
        terms = _read_lines("terms", self.terms, read_terms, mistakes) or []
        named = {"mean": ("prior_means", self.prior_means), "scales": ("prior_scales", self.prior_scales)}
        priors = {name: _read_lines(*typed, read_numbers, mistakes) for name, typed in named.items() if typed[1]}
        document: dict[str, Any] = {
            "dataset_id": self.dataset_id,
            "method": registry.DEFAULT,
            "model": {
                "family": self.family,
                "features": [*self.features, *terms],
                "target": self.target or None,
                "prior": {"scale": self._read_number("prior_scale", mistakes)} | priors,
            },
            "privacy": {"epsilon": 1.0 if self.is_by_widening else self._read_number("epsilon", mistakes)},
        }
        if self.size:
            document["size"] = self._read_whole("size", mistakes)
        if self.is_by_widening:
            self._read_number("widening", mistakes)
        if self.purpose:
            document["purpose"] = self.purpose
        if not self.features and not self.terms:
            mistakes.add("features", "Choose at least one feature.")
        return document, mistakes

    def _read_number(self, name: str, mistakes: Mistakes) -> float:
        text = getattr(self, name)
        if _NUMBER.fullmatch(text) is None:
            mistakes.add(name, ENTER_NUMBER)
            return 1.0
        return float(text)

    def _read_whole(self, name: str, mistakes: Mistakes) -> int:
        text = getattr(self, name)
        if not (text.isascii() and text.isdecimal() and len(text) <= 9):
            mistakes.add(name, "Enter a whole number, as in 50.")
            return 1
        return int(text)


def make_body(document: dict[str, Any]) -> JobBody:
    """Validate the request as the API does.

    Raises:
        InvalidRequest: with one fault for each wrong member.
    """
    body = validate(JobBody, json.dumps(document).encode())
    assert isinstance(body, JobBody)
    return body


def _read_lines(name: str, text: str, read: Callable[[str], Read], mistakes: Mistakes) -> Read | None:
    try:
        return read(text)
    except NotRead as refusal:
        mistakes.add(name, str(refusal))
        return None


def make_mistakes(refusal: CorevaultError, typed: JobForm) -> Mistakes:
    """Assign the faults of a refused request to fields; others are about the whole form."""
    mistakes = Mistakes()
    faults = refusal.faults if isinstance(refusal, InvalidRequest) else ()
    for fault in faults:
        name = next((name for start, name in _OF_POINTERS if fault.pointer.startswith(start)), "")
        place = _FEATURE.match(fault.pointer)
        if place is not None and int(place[1]) >= len(typed.features):
            name = "terms"
        mistakes.add(name, fault.message)
    if isinstance(refusal, RateLimited):
        seconds = int(getattr(refusal, "headers", {}).get("Retry-After", RETRY_AFTER_SECONDS))
        mistakes.add("", _BUSY.format(count_noun(seconds, "second")))
    elif isinstance(refusal, BudgetExceeded):
        remaining = refusal.members["remaining"]
        assert isinstance(remaining, dict)
        mistakes.add("epsilon", _BEYOND.format(format_number(remaining["epsilon"])))
    elif not faults:
        mistakes.add("", refusal.detail)
    return mistakes


def write_python(body: JobBody, origin: str) -> str:
    """Write the same job for the client."""
    model = body.model
    target = "" if model.target is None else f', target="{model.target}"'
    size = "" if body.size is None else f", size={body.size}"
    epsilon = "" if body.privacy is None else f", epsilon={body.privacy.epsilon!r}"
    purpose = "" if body.purpose is None else f", purpose={json.dumps(body.purpose, ensure_ascii=False)}"
    prior = "".join(
        f", {name}={json.dumps(values)}"
        for name, values in (("prior_mean", model.prior.mean), ("prior_scales", model.prior.scales))
        if values
    )
    name, features = _MODELS[model.family], json.dumps([feature_to_json(each) for each in model.spec().features])
    return (
        f"from corevault import Client, {name}\n\n"
        f'client = Client("{origin}", api_key)\n'
        f"model = {name}(features={features}{target}, prior_scale={model.prior.scale!r}{prior})\n"
        f'job = client.jobs.submit("{body.dataset_id}", model{size}{epsilon}{purpose})\n'
        "release = client.releases.download(client.jobs.wait(job).release_id)"
    )
