"""What a certificate states: plain JSON that RFC 8785 can canonicalise, without durations and without dates."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Final

import rfc8785

from app.errors import Internal
from app.http.requests.digests import digest_header
from app.inference.core.facts import DeclaredFacts
from app.inference.core.plan import MechanismPlan, ModelSpec
from app.inference.core.plan_json import query_to_json
from app.inference.core.release import Pseudocoreset
from app.inference.models import family
from app.ledger import CheckpointRef, Guarantee
from app.privacy.events import to_json
from app.privacy.relation import IN_WORDS, Relation

CONDITIONS: Final = "conditional on schema facts that were not read off the rows"
NOISE_IN_WORDS: Final = (
    "Noise is drawn on a finer grid, at a scale between 0.75 * 2^57 and 2^57 of its steps. "
    "An odd number of these steps makes one step of the answers' grid. "
    "Noise is rounded to the nearest step of the answers' grid and added to the integer sum."
)
LARGEST_INTEGER: Final = 2**53 - 1
_DISTRIBUTIONS: Final = {
    "corevault": "corevault-server",
    "dp-accounting": "dp-accounting",
    "numpy": "numpy",
    "opendp": "opendp",
}


@dataclass(frozen=True, slots=True)
class Run:
    """A run that is about to be released."""

    job_id: str
    dataset_id: str
    content_version: int
    facts: DeclaredFacts
    plan: MechanismPlan
    cost: Mapping[str, float] | None  # {"epsilon", "delta"} of the job alone; None on public data


@dataclass(frozen=True, slots=True)
class Standing:
    """The account at the moment of the settlement."""

    guarantee: Guarantee
    checkpoint: CheckpointRef


def release_body(run: Run, points: Pseudocoreset) -> dict[str, Any]:
    """The stored part of the public release."""
    return {
        "method": run.plan.method,
        "model": released_model(run),
        "size": run.plan.size,
        "design": design_json(points),
        "diagnostics": plain(points.diagnostics),
        "cost": None if run.cost is None else dict(run.cost),
    } | posterior_json(points)


def statement(
    release_id: str, run: Run, points: Pseudocoreset, digests: Mapping[str, str], standing: Standing | None
) -> dict[str, Any]:
    """The statement to sign.

    Raises:
        Internal: for a value that JSON cannot hold.
    """
    mechanism = run.plan.mechanism
    stated = {
        "release_id": release_id,
        "dataset_id": run.dataset_id,
        "content_version": run.content_version,
        "model": released_model(run),
        "method": run.plan.method,
        "size": run.plan.size,
        "design": design_json(points),
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
        "conditions": CONDITIONS,
    }
    return {name: plain(value) for name, value in stated.items()} | _posterior_digest(points)


def _noise_grid(plan: MechanismPlan) -> dict[str, Any]:
    """``bits`` is the grid that answers lie on; ``drawn`` says how the noise comes to it."""
    return {"noise": "discrete_gaussian", "bits": plan.grid_bits, "drawn": NOISE_IN_WORDS}


def model_json(model: ModelSpec) -> dict[str, Any]:
    """A model in the words of the API, without what is absent of a prior and of the noise."""
    prior: dict[str, Any] = {"scale": model.prior.scale}
    if model.prior.scales:
        prior["scales"] = dict(model.prior.scales)
    if model.prior.degrees_of_freedom is not None:
        prior["degrees_of_freedom"] = model.prior.degrees_of_freedom
    stated = {"family": model.family, "features": list(model.features), "target": model.target, "prior": prior}
    return stated if model.noise_scale is None else {**stated, "noise_scale": model.noise_scale}


def released_model(run: Run) -> dict[str, Any]:
    """The model, and how it sees its target where not as the points do."""
    model = run.plan.model
    target = next((column for column in run.facts.columns if column.name == model.target), None)
    transform = None if target is None else family(model.family).target_transform(target)
    return model_json(model) if transform is None else {**model_json(model), "target_transform": transform}


def design_json(points: Pseudocoreset) -> list[dict[str, Any]]:
    """How each design column comes from the declared table; a constant has no source."""
    entries = (asdict(column) for column in points.design)
    return [{name: plain(value) for name, value in entry.items() if value is not None} for entry in entries]


def posterior_json(points: Pseudocoreset) -> dict[str, Any]:
    """``{"posterior": ...}`` with a ``covariance``, or a ``variance`` for each parameter; nothing without one."""
    posterior = points.posterior
    if posterior is None:
        return {}
    spread = "covariance" if posterior.covariance.ndim > 1 else "variance"
    stated = {"parameters": posterior.names, "mean": posterior.mean.tolist(), spread: posterior.covariance.tolist()}
    return {"posterior": plain(stated)}


def _posterior_digest(points: Pseudocoreset) -> dict[str, str]:
    """SHA-256 of the RFC 8785 form of the posterior: what a certificate says of it."""
    if points.posterior is None:
        return {}
    canonical = rfc8785.dumps(posterior_json(points)["posterior"])
    return {"posterior_digest": digest_header(hashlib.sha256(canonical).digest())}


def plain(value: Any) -> Any:
    """``value`` in JSON's own types; integers that a double cannot hold become text.

    Raises:
        Internal: for anything else, NaN and infinities included.
    """
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= LARGEST_INTEGER else str(value)
        case float() if value - value == 0:
            return value
        case Mapping():
            return {str(name): plain(member) for name, member in value.items()}
        case Sequence():
            return [plain(member) for member in value]
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
