"""Makes the statement of a certificate and the stored JSON of a release.

A statement is a JSON object that RFC 8785 can serialise. It has no member for a date or a duration. The ids in it
contain the times at which their objects were created.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Final

import rfc8785

from app.errors import Internal
from app.http.requests.digests import digest_header
from app.inference.core.designs import feature_to_json
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan, ModelSpec
from app.inference.core.plan_json import query_to_json
from app.inference.core.release import DesignColumn, Pseudocoreset, Released
from app.inference.models import find_family, list_families
from app.ledger import CheckpointRef, Guarantee, Registration
from app.privacy.events import to_json
from app.privacy.relation import IN_WORDS, Relation

CONDITIONS: Final = (
    "The guarantee is conditional on schema facts that were not read off the rows. "
    "These facts are the declared columns, types, bounds, categories, slots and privacy unit."
)
OF_TERMS: Final = " The same holds for the numbers in the terms of the model, such as knots and weights."
"""Added to the conditions of a model with terms."""
NOISE_IN_WORDS: Final = (
    "Contributions are whole numbers of steps of the answers' grid, so their sum is exact. "
    "Noise is drawn on a finer grid. Its scale is between 0.75 * 2^57 and 2^57 fine steps. "
    "One step of the answers' grid is an odd number of fine steps. "
    "The noise is rounded to the nearest step of the answers' grid and added to the exact sum."
)
SERIES_IN_WORDS: Final = (
    "The dataset is a block of the series '{name}'. "
    "Its table is upload {place} of the series, in the order of receipt. "
    "People whom earlier uploads to other blocks have registered count there. Their rows are null rows here. "
    "So the guarantee of a person's own block covers all releases of the series."
)
LARGEST_INTEGER: Final = 2**53 - 1
MOST_STATED: Final = 100
"""Largest number of parameters whose covariance is in the body of a release, which the database stores."""
_OPTIONAL: Final = (
    "noise_scale",
    "degrees_of_freedom",
    "dispersion",
    "topics",
    "document_concentration",
    "topic_concentration",
    "hidden_units",
    "noise_covariance",
)
"""Members of a model that are left out if they have no value."""
_WITHOUT_PRIOR: Final = frozenset(family.name for family in list_families() if not family.normal_prior)
_DISTRIBUTIONS: Final = {
    "corevault": "corevault-server",
    "dp-accounting": "dp-accounting",
    "numpy": "numpy",
    "opendp": "opendp",
}


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run whose release is not published yet."""

    job_id: str
    dataset_id: str
    content_version: int
    facts: DeclaredFacts
    plan: MechanismPlan
    cost: Mapping[str, float] | None
    """``{"epsilon", "delta"}`` of this job alone, without the account's other jobs; None on public data."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The account's guarantee and newest checkpoint, at the settlement of the job."""

    guarantee: Guarantee
    checkpoint: CheckpointRef
    registration: Registration | None = None
    """The register of the content, if the dataset is in a series."""


def make_release_body(run: Run, released: Released) -> dict[str, Any]:
    """Make the JSON of a release that the database stores in one column."""
    stated = {
        "method": run.plan.method,
        "model": make_released_model(run),
        "size": count_points(released),
        "design": make_design_json(released.design),
        "diagnostics": make_plain(released.diagnostics),
        "cost": None if run.cost is None else dict(run.cost),
    }
    return stated | make_reliability_json(released) | make_posterior_json(released)


def make_statement(
    release_id: str, run: Run, released: Released, digests: Mapping[str, str], standing: Standing | None
) -> dict[str, Any]:
    """Make the statement that the certificate signs.

    Raises:
        Internal: for a value that JSON cannot represent.
    """
    mechanism = run.plan.mechanism
    stated = {
        "release_id": release_id,
        "dataset_id": run.dataset_id,
        "content_version": run.content_version,
        "model": make_released_model(run),
        "method": run.plan.method,
        "size": count_points(released),
        "design": make_design_json(released.design),
        "relation": str(Relation.ZERO_OUT),
        "relation_in_words": IN_WORDS,
        "unit": dict(run.facts.unit),
        "slots": run.facts.slots,
        "sampler": None if mechanism is None else "poisson",
        "sampling_rate": None if mechanism is None else mechanism.sampling_rate,
        "noise_multiplier": None if mechanism is None else mechanism.noise_multiplier,
        "iterations": None if mechanism is None else mechanism.iterations,
        "clipping": run.plan.clipping,
        "noise_grid": None if mechanism is None else _noise_grid(run.plan),
        "events": [to_json(event) for event in run.plan.events],
        "queries": [query_to_json(query) for query in run.plan.queries],
        "privacy": run.cost,
        "account": None if standing is None else _account(standing),
        "accountant": None if standing is None else standing.guarantee.accountant,
        "versions": {name: version(distribution) for name, distribution in _DISTRIBUTIONS.items()},
        "digests": dict(digests),
        "conditions": CONDITIONS + (OF_TERMS if has_terms(run.plan.model) else ""),
    }
    plain_members = {name: make_plain(value) for name, value in stated.items()}
    return plain_members | make_reliability_json(released) | _posterior_digest(released) | _describe_series(standing)


def _describe_series(standing: Standing | None) -> dict[str, Any]:
    """Make ``{"series": ...}``, or an empty object without a series."""
    registration = None if standing is None else standing.registration
    if registration is None:
        return {}
    name, place = registration.series, registration.place
    return {"series": {"name": name, "place": place, "in_words": SERIES_IN_WORDS.format(name=name, place=place)}}


def _noise_grid(plan: MechanismPlan) -> dict[str, Any]:
    """Describe the noise. One clipping norm has ``2**bits`` steps of the answers' grid."""
    return {"noise": "discrete_gaussian", "bits": plan.grid_bits, "drawn": NOISE_IN_WORDS}


def make_model_json(model: ModelSpec) -> dict[str, Any]:
    """Make a model's JSON as in the API; optional members without a value are left out.

    So is the prior of a family that has no normal prior.
    """
    prior: dict[str, Any] = {"scale": model.prior.scale}
    if model.prior.scales:
        prior["scales"] = dict(model.prior.scales)
    if model.prior.degrees_of_freedom is not None:
        prior["degrees_of_freedom"] = model.prior.degrees_of_freedom
    if model.prior.mean:
        prior["mean"] = dict(model.prior.mean)
    features = [feature_to_json(feature) for feature in model.features]
    stated: dict[str, Any] = {"family": model.family, "features": features, "target": model.target}
    if model.family not in _WITHOUT_PRIOR:
        stated["prior"] = prior
    optional = {name: getattr(model, name) for name in _OPTIONAL}
    return stated | {name: value for name, value in optional.items() if value is not None}


def has_terms(model: ModelSpec) -> bool:
    """Whether a feature of the model is a term."""
    return not all(isinstance(feature, str) for feature in model.features)


def make_released_model(run: Run) -> dict[str, Any]:
    """Make the JSON of a release's model.

    ``target_transform`` is added if the table's target is not the model's target: the model scales it, or uses the
    index of a category. Defaults of the family are stated, because a later version may change them.
    """
    model = run.plan.model
    target = next((column for column in run.facts.columns if column.name == model.target), None)
    chosen = find_family(model.family)
    stated = make_model_json(model) | chosen.defaults(model)
    transform = None if target is None else chosen.target_transform(target)
    return stated if transform is None else {**stated, "target_transform": transform}


def count_points(released: Released) -> int:
    """Count the points of a release; a belief without points has none, and neither have group weights."""
    return len(released.weight) if isinstance(released, Pseudocoreset) else 0


def make_design_json(columns: Sequence[DesignColumn]) -> list[dict[str, Any]]:
    """Describe how each design column is computed; members without a value are left out.

    A constant column has no ``source``. Only columns of terms have ``term``, and ``sources`` if there are several.
    """
    entries = (asdict(column) for column in columns)
    return [
        {name: make_plain(value) for name, value in entry.items() if value is not None and value != ()}
        for entry in entries
    ]


def make_reliability_json(released: Released) -> dict[str, Any]:
    """Make ``{"reliability": {"grade", "reasons"}}``, or an empty object if the method makes no statement.

    Raises:
        Internal: ``trusted`` in the diagnostics contradicts the grade.
    """
    reliability = released.reliability
    if reliability is None:
        return {}
    if released.diagnostics.get("trusted", reliability.is_calibrated) is not reliability.is_calibrated:
        raise Internal
    reasons = [{"code": reason.code, "words": reason.words} for reason in reliability.reasons]
    return {"reliability": {"grade": str(reliability.grade), "reasons": reasons}}


def make_posterior_json(released: Released) -> dict[str, Any]:
    """Make ``{"posterior": ...}``, or an empty object if the method releases no posterior.

    The posterior has the member ``covariance`` (a list of rows). If it is diagonal, it has ``variance`` instead, one
    number for each parameter. A covariance of more than ``MOST_STATED`` parameters is only in the belief.
    """
    posterior = released.posterior if isinstance(released, Pseudocoreset) else None
    if posterior is None or (posterior.covariance.ndim > 1 and len(posterior.names) > MOST_STATED):
        return {}
    spread = "covariance" if posterior.covariance.ndim > 1 else "variance"
    stated = {"parameters": posterior.names, "mean": posterior.mean.tolist(), spread: posterior.covariance.tolist()}
    return {"posterior": make_plain(stated)}


def _posterior_digest(released: Released) -> dict[str, str]:
    """Make ``{"posterior_digest": ...}``: SHA-256 of the posterior's RFC 8785 form; empty without one."""
    stated = make_posterior_json(released)
    if not stated:
        return {}
    canonical = rfc8785.dumps(stated["posterior"])
    return {"posterior_digest": digest_header(hashlib.sha256(canonical).digest())}


def make_plain(value: Any) -> Any:
    """Convert ``value`` to the types of JSON; integers above 2**53 - 1 in size become text.

    Raises:
        Internal: JSON cannot represent the value, for example NaN or infinity.
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= LARGEST_INTEGER else str(value)
        case float() if value - value == 0:
            return value
        case Mapping():
            return {str(name): make_plain(member) for name, member in value.items()}
        case Sequence():
            return [make_plain(member) for member in value]
        case _:
            raise Internal


def _account(standing: Standing) -> dict[str, Any]:
    guarantee, checkpoint = standing.guarantee, standing.checkpoint
    return {
        "limit": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
        "sequence": checkpoint.account_sequence,
        "head": checkpoint.account_head,
        "checkpoint": {"sequence": checkpoint.sequence, "hash": checkpoint.checkpoint_hash},
        "tranches": guarantee.tranches,
    }
