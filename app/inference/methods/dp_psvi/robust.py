"""DP-PSVI with beta-likelihoods: its query, and a bound on contributions."""

import math

from app.inference.core.model import Array64, Model
from app.inference.private_zone.mechanisms import GRID_BITS
from app.inference.private_zone.queries import PotentialSum, RobustPotentialSum


def find_kind(beta: float) -> str:
    """Return the kind of the queries."""
    return RobustPotentialSum.kind if beta else PotentialSum.kind


def make_query(draws: Array64, clip: float, beta: float) -> PotentialSum:
    """Make the query of one iteration at ``draws`` ``(S, D)``."""
    antithetic = len(draws) % 2 == 0
    return RobustPotentialSum(draws, clip, antithetic, beta) if beta else PotentialSum(draws, clip, antithetic)


def bound_norm(model: Model, draws: int, rows_per_unit: int) -> float:
    """Bound the norm of a unit's centred potentials, by declared facts; infinite without a bound.

    Numbers of range R have a variance of at most ``R^2 / 4`` (Popoviciu's inequality).
    """
    widest = getattr(model, "potential_range", None)
    return math.inf if widest is None else 0.5 * widest * math.sqrt(draws) * rows_per_unit


def describe_clipping(draws: int, medians: float, least: float, beta: float, longest: float) -> str:
    """Describe the bound of contributions for the certificate."""
    values = f"potentials of the beta-likelihood (beta = {beta:.4g})" if beta else "log-likelihoods"
    most = "" if math.isinf(longest) else f", and at most {longest:.4g}, which no vector exceeds"
    return (
        f"Each unit contributes a vector of {draws} {values} at posterior draws, summed over its rows and centred. "
        f"The vector is clipped to L2 norm C, divided by C/2^{GRID_BITS} and rounded to integers whose squares "
        f"sum to at most 2^{2 * GRID_BITS}. C is {medians:g} times the median norm over the current pseudopoints, and "
        f"at least {least:.4g}{most}."
    )
