"""The end of a run of ``vips``: the belief, its grade, and points if the belief is normal."""

import math

import numpy as np

from app.inference.core import reasons
from app.inference.core.linear_algebra import invert
from app.inference.core.problems import make_problem, name_parameters
from app.inference.core.release import (
    BeliefRelease,
    Grade,
    Posterior,
    Pseudocoreset,
    Released,
    judge,
)
from app.inference.core.statistics import Conclusion
from app.inference.fitting.fit import fit_points
from app.inference.methods.vips.state import State
from app.inference.post.diagnostics import MOST_FIT, compute_effective_size, round_by_parameter, round_stated
from app.inference.post.doubt import state_doubt


def make_release(state: State, rng: np.random.Generator) -> Released:
    """Make the release from the averages of all answers."""
    setup = state.setup
    with np.errstate(all="ignore"):
        columns = [column.name for column in setup.design.columns]
        conclusion = setup.model.conclude(state.averages, columns)
        if conclusion.normal is None:
            reliability = judge(conclusion.findings)
            return BeliefRelease(
                setup.design.columns,
                conclusion.blocks,
                reliability,
                {"trusted": reliability.is_calibrated} | _round(conclusion),
            )
        return _release_points(state, conclusion, rng)


def _release_points(state: State, conclusion: Conclusion, rng: np.random.Generator) -> Pseudocoreset:
    """Release the normal belief with points that represent it."""
    setup = state.setup
    problem = make_problem(setup.plan.model, setup.facts)
    assert conclusion.normal is not None, "checked by the caller"
    mean, precision, doubt = conclusion.normal
    model, design, prior = problem
    fitted = fit_points(
        model,
        design,
        prior,
        mean,
        precision,
        setup.plan.size,
        rng,
        total=setup.facts.slots * setup.facts.rows_per_unit,
    )
    stated = None if doubt is None else state_doubt(doubt)
    findings = list(conclusion.findings)
    if fitted.kl > MOST_FIT:
        findings.append((reasons.POINTS_DIFFER, Grade.CENTRE_ONLY))
    if stated is None:
        findings.append((reasons.DOUBT_NOT_STATED, Grade.CENTRE_ONLY))
    if not (np.all(np.isfinite(mean)) and math.isfinite(fitted.kl)):
        findings.append((reasons.NOT_FINITE, Grade.NOT_USABLE))
    reliability = judge(findings)
    covariance = invert(precision)
    noise = np.zeros(len(mean)) if stated is None else np.sqrt(stated.diagonal() / covariance.diagonal())
    figures = {
        "trusted": reliability.is_calibrated,
        "fit_kl": round_stated(fitted.kl),
        **_round(conclusion),
        "noise_in_posterior_sds": round_by_parameter(model, design, noise),
        "represents_every_direction": setup.plan.size >= model.smallest_exact,
        "effective_size": round_stated(compute_effective_size(fitted.weight)),
        "total_weight": round_stated(float(fitted.weight.sum())),
    }
    return Pseudocoreset(
        fitted.u,
        design.decode_targets(fitted.y),
        fitted.weight,
        design.columns,
        figures,
        Posterior(name_parameters(problem), mean, covariance),
        doubt=stated,
        reliability=reliability,
        further=conclusion.blocks,
    )


def _round(conclusion: Conclusion) -> dict[str, float]:
    return {name: round_stated(value) for name, value in conclusion.figures.items()}
