"""One run without the service: plan, run in a separate process, measure.

The case declares ``delta``, by default 1 / slots as in the papers; the service requires a smaller one. Noise is the
service's discrete Gaussian, from the operating system's random numbers. So private runs differ from one another, and
everything else follows the seed.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from app.inference.conjugate import make_run_problem
from app.inference.core.plan import Mechanism, MechanismPlan, PlanRequest
from app.inference.core.release import Pseudocoreset
from app.inference.post.laplace import Laplace
from app.inference.private_zone.mechanisms import DiscreteGaussian, NoiseSource
from app.inference.private_zone.oracle import ClippedGaussianOracle
from app.inference.registry import find_method
from app.inference.runner import run_points, run_public
from app.privacy.calibration import calibrate
from benchmarks.cases import Case
from benchmarks.environment import find_commit
from benchmarks.isolation import Ended, Progress, isolate
from benchmarks.measures import compute_prediction, compute_prior_divergence, fit_posterior, read_stated
from benchmarks.records import FINISHED, Record
from benchmarks.sources import NoNoise, RoundedNoise, Timed
from support.divergence import compute_divergence

NO_NOISE = 1e-3
"""The noise multiplier of a plan that is run without noise."""
POSTERIOR_METHODS = frozenset({"dp-vi"})
"""Methods measured by the posterior that they state. All others are measured by their points."""
_COINS, _SAMPLING, _NOISE = range(3)
"""Streams of a seed: random choices of the method, subsamples, and seeded noise."""


@dataclass(frozen=True)
class Job:
    """A run to carry out.

    An infinite ``epsilon`` means a private method without noise. ``mechanism`` replaces calibration to ``epsilon``.
    ``label`` is the name in tables, by default the method's id.
    """

    case: Case
    method: str
    size: int
    seed: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float = math.nan
    mechanism: Mechanism | None = None
    label: str = ""
    limit_seconds: int | None = None


def execute(job: Job) -> Record:
    """The record of a run. Its outcome shows whether the run was stopped or failed."""
    plan = make_plan(job)
    ended = isolate(lambda progress: carry_out(job, plan, progress), job.limit_seconds)
    record = Record(
        data=job.case.name,
        method=job.label or job.method,
        rows=job.case.facts.slots,
        parameters=job.case.problem.model.dimension,
        size=job.size,
        epsilon=job.epsilon,
        seed=job.seed,
        peak_mib=ended.peak_mib,
        outcome=_outcome(ended, plan),
        commit=find_commit(),
    )
    if ended.value is None:
        return record
    release, source_seconds = ended.value
    timed = replace(record, seconds=ended.seconds - source_seconds, source_seconds=source_seconds)
    if job.case.exact is None:
        return timed
    stated = release.posterior if job.method in POSTERIOR_METHODS else None
    return measure(job.case, fit_posterior(job.case, release) if stated is None else read_stated(stated), timed)


def measure(case: Case, belief: Laplace, record: Record) -> Record:
    """``record`` with the quality of the posterior ``belief``."""
    assert case.exact is not None
    kl, held_out, full = (
        compute_divergence(belief, case.exact),
        compute_prediction(case, belief),
        compute_prediction(case, case.exact),
    )
    return replace(
        record,
        kl=kl,
        relative_kl=kl / compute_prior_divergence(case),
        accuracy=held_out.accuracy,
        log_likelihood=held_out.log_likelihood,
        full_accuracy=full.accuracy,
        full_log_likelihood=full.log_likelihood,
    )


def make_plan(job: Job) -> MechanismPlan:
    """The plan, calibrated to ``job.epsilon``."""
    planner = find_method(job.method)
    if not planner.private:
        return planner.plan(PlanRequest(job.method, job.size, job.case.spec, job.parameters), job.case.public)

    def request(noise: float | None) -> PlanRequest:
        return PlanRequest(job.method, job.size, job.case.spec, job.parameters, job.mechanism, noise)

    def at(noise: float) -> MechanismPlan:
        return planner.plan(request(noise), job.case.facts)

    if job.mechanism is not None:
        return planner.plan(request(None), job.case.facts)
    return at(NO_NOISE if math.isinf(job.epsilon) else _calibrate(at, job))


_CALIBRATED: dict[tuple[object, ...], float] = {}


def _calibrate(at: Callable[[float], MechanismPlan], job: Job) -> float:
    key = (job.case.name, job.method, job.size, job.epsilon, *sorted(job.parameters.items()))
    if key not in _CALIBRATED:
        delta = job.case.facts.delta
        assert delta is not None
        _CALIBRATED[key] = calibrate(lambda noise: at(noise).events, job.epsilon, delta)
    return _CALIBRATED[key]


def carry_out(
    job: Job, plan: MechanismPlan, progress: Progress, noise: NoiseSource | None = None
) -> tuple[Pseudocoreset, float]:
    """The release, and the seconds to gather rows. Without ``noise`` the service's is used."""
    source = Timed(job.case.source)
    rng, sampling = (np.random.default_rng((job.seed, stream)) for stream in (_COINS, _SAMPLING))
    if not plan.queries:
        return run_public(plan, job.case.public, source, rng), source.seconds
    if noise is None:
        noise = NoNoise() if math.isinf(job.epsilon) else DiscreteGaussian()
    facts = job.case.facts
    oracle = ClippedGaussianOracle(
        make_run_problem(plan, facts).model, plan, facts, source, noise=noise, sampling=sampling
    )
    return run_points(plan, facts, oracle, rng, progress), source.seconds


def make_seeded_release(job: Job) -> Pseudocoreset:
    """The release, made in this process with rounded noise that follows the seed."""
    noise = RoundedNoise(np.random.default_rng((job.seed, _NOISE)))
    release, _ = carry_out(job, make_plan(job), lambda _: None, noise)
    return release


def _outcome(ended: Ended[Any], plan: MechanismPlan) -> str:
    if ended.fault:
        return f"failed: {ended.fault}"
    if ended.stopped:
        return f"stopped after {ended.seconds:.0f} s at step {ended.steps} of {plan.steps}"
    return FINISHED
