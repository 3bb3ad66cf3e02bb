"""Targets of reliability, and whether the releases of a sweep reach them."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.stats import beta, binomtest

from benchmarks.outcomes import Outcome
from benchmarks.stated import CALIBRATED
from benchmarks.summaries import NOTHING, format_number
from benchmarks.tables import KINDS

FAR_NATS, FAR_TIMES = 30.0, 5.0
"""A calibrated release is bad if its KL exceeds both ``FAR_NATS`` nats and ``FAR_TIMES`` times its ``noise_kl``."""
MOST_BAD: Final = 1 / 200
FARTHEST: Final = 10.0
"""No calibrated release may exceed the limit of a bad one by more than this factor."""
LEAST_CALIBRATED, FROM_EPSILON = 0.8, 0.2
"""The least share of calibrated releases of well-behaved tables, and the epsilon from which it is asked."""
COVERED: Final = (0.9, 0.99)


class Target(NamedTuple):
    """A line of the page. ``holds`` is None without a release that counts."""

    asked: str
    measured: str
    holds: bool | None


def compute_ratio(outcome: Outcome) -> float:
    """KL over ``noise_kl``, which counts as at least six nats; infinite if one of them is not finite."""
    if not (math.isfinite(outcome.kl) and math.isfinite(outcome.noise_kl)):
        return math.inf
    return outcome.kl / max(outcome.noise_kl, FAR_NATS / FAR_TIMES)


def is_calibrated(outcome: Outcome) -> bool:
    """Whether the release states so. A table without an exact posterior does not count."""
    return outcome.grade == CALIBRATED and not outcome.failure


def is_bad(outcome: Outcome) -> bool:
    """Whether the release is calibrated by its statement, but far off."""
    return is_calibrated(outcome) and compute_ratio(outcome) > FAR_TIMES


def list_targets(outcomes: Sequence[Outcome]) -> list[Target]:
    """Compare the outcomes with every target."""
    calibrated = list(filter(is_calibrated, outcomes))
    usual = [each for each in outcomes if KINDS[each.kind].group == "well-behaved" and each.epsilon >= FROM_EPSILON]
    return [
        _limit_share(
            f"at most {MOST_BAD:.1%} of calibrated releases are bad",
            calibrated,
            is_bad,
            lambda share: share <= MOST_BAD,
        ),
        _limit_farthest(calibrated),
        _limit_share(
            f"at least {LEAST_CALIBRATED:.0%} of well-behaved tables at ε ≥ {FROM_EPSILON:g} are calibrated",
            usual,
            is_calibrated,
            lambda share: share >= LEAST_CALIBRATED,
        ),
        *_limit_coverage(calibrated),
    ]


def _limit_share(
    asked: str,
    outcomes: Sequence[Outcome],
    counts: Callable[[Outcome], bool],
    holds: Callable[[float], bool],
) -> Target:
    if not outcomes:
        return Target(asked, NOTHING, None)
    count = sum(map(counts, outcomes))
    low, high = binomtest(count, len(outcomes)).proportion_ci(0.95)
    share = count / len(outcomes)
    return Target(
        asked, f"{count} of {len(outcomes)}: {share:.1%} (95 % interval: {low:.1%} to {high:.1%})", holds(share)
    )


def _limit_farthest(calibrated: Sequence[Outcome]) -> Target:
    most = FAR_TIMES * FARTHEST
    asked = f"no calibrated release has a ratio above {most:g}"
    if not calibrated:
        return Target(asked, NOTHING, None)
    ratios = sorted(map(compute_ratio, calibrated), reverse=True)
    above = sum(ratio > most for ratio in ratios)
    return Target(asked, f"{above} of {len(ratios)}; the largest is {format_number(ratios[0])}", above == 0)


def _limit_coverage(calibrated: Sequence[Outcome]) -> Iterator[Target]:
    low, high = COVERED
    between, correlation = f"between {low:.0%} and {high:.0%}", estimate_correlation(calibrated)
    for what, group in (("kinds", ("kind",)), ("kinds at each ε", ("kind", "epsilon"))):
        asked, groups = f"coverage of all {what} is {between}", _group(calibrated, group)
        shares = [_average(each) for each in groups]
        below, above = sum(share < low for share in shares), sum(share > high for share in shares)
        inside = len(shares) - below - above
        intervals = [compute_interval(each, correlation) for each in groups]
        surely = [
            sum(least >= low and most <= high for least, most in intervals),
            sum(most < low for _, most in intervals),
            sum(least > high for least, _ in intervals),
        ]
        counts = ", ".join(f"{n} {where}" for n, where in zip(surely, ("inside", "below", "above"), strict=True))
        measured = f"{inside} of {len(shares)}; {below} below, {above} above. "
        measured += f"By intervals: {counts}, {len(shares) - sum(surely)} undecided"
        yield Target(asked, measured if shares else NOTHING, inside == len(shares) if shares else None)


def _group(outcomes: Iterable[Outcome], names: Iterable[str]) -> list[list[Outcome]]:
    names, groups = tuple(names), dict[object, list[Outcome]]()
    for each in outcomes:
        groups.setdefault(tuple(getattr(each, name) for name in names), []).append(each)
    return list(groups.values())


def _average(outcomes: Iterable[Outcome]) -> float:
    return float(np.mean([each.coverage for each in outcomes]))


def estimate_correlation(outcomes: Sequence[Outcome]) -> float:
    """Estimate the correlation of coverage between two parameters of a release.

    A release's coverage has the variance ``m (1 - m) (r + (1 - r) / D)``, with the mean m and D parameters. This solves
    for r, which is 1 if all releases cover all parameters or none.
    """
    if not outcomes:
        return 1.0
    mean, size = _average(outcomes), np.array([each.parameters for each in outcomes])
    squares = (np.array([each.coverage for each in outcomes]) - mean) ** 2
    own = np.sum(1 - 1 / size)
    if mean in {0.0, 1.0} or own == 0:
        return 1.0
    return float(np.clip(np.sum(squares / (mean * (1 - mean)) - 1 / size) / own, 0, 1))


def compute_interval(outcomes: Sequence[Outcome], correlation: float) -> tuple[float, float]:
    """Compute a 95 % interval of the mean coverage of releases.

    It is the exact interval of a binomial share (Clopper & Pearson, *Biometrika* 26, 1934). The trials are independent
    parameters: as many as give the mean the same variance (Kish, *Survey Sampling*, 1965).
    """
    each = sum(correlation + (1 - correlation) / one.parameters for one in outcomes)
    count = len(outcomes) ** 2 / each
    covered = _average(outcomes) * count
    rest = max(count - covered, 0.0)
    low = float(beta.ppf(0.025, covered, rest + 1)) if covered > 0 else 0.0
    return low, float(beta.ppf(0.975, covered + 1, rest)) if rest > 0 else 1.0
