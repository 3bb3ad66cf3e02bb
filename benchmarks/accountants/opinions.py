"""Statistics of audits by a second library, on simulated scores of known laws."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from app.privacy.audit.bounds import bound_epsilon, count_positives
from app.privacy.audit.guesses import bound_epsilon_by_guesses
from app.privacy.audit.laws import Array64

ERROR: Final = 1e-3
DELTA: Final = 1e-6
FALSE_POSITIVES: Final = 0.01
NAMES: Final = ("by_one_point", "area", "power", "by_guesses")
TOLERANCE: Final = 1e-5


def make_cases() -> list[dict[str, Any]]:
    """Make cases of normal scores with several separations, sizes and thresholds."""
    cases = []
    for number, (separation, size, threshold) in enumerate(
        ((0.0, 50, 0.0), (0.5, 400, 0.25), (1.0, 2000, 2.0), (2.0, 300, 1.0), (4.0, 1000, 2.5), (8.0, 200, 4.0))
    ):
        rng = np.random.default_rng(number)
        absent, present = rng.standard_normal(size), separation + rng.standard_normal(size)
        cases.append(
            {
                "separation": separation,
                "present": present.tolist(),
                "absent": absent.tolist(),
                "threshold": threshold,
                "error": ERROR,
                "delta": DELTA,
                "false_positives": FALSE_POSITIVES,
            }
        )
    return cases


def trace_hull(scores: Array64, present: Array64) -> tuple[Array64, Array64]:
    """Trace the curve of tests that choose between two thresholds at random: the concave hull of all thresholds.

    Returns rates of false positives, in ascending order, and of true positives.
    """
    order = np.argsort(-scores, kind="stable")
    ordered, is_in = scores[order], present[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    true, false = (np.append(0.0, np.cumsum(each)[last] / each.sum()) for each in (is_in, 1 - is_in))
    hull: list[int] = []
    for point in range(len(true)):
        while len(hull) > 1 and not _is_above(hull[-1], hull[-2], point, false, true):
            hull.pop()
        hull.append(point)
    return false[hull], true[hull]


def _is_above(middle: int, first: int, last: int, false: Array64, true: Array64) -> bool:
    """Whether a point of the curve is above the line through two others."""
    rise = (true[middle] - true[first]) * (false[last] - false[first])
    return bool(rise > (true[last] - true[first]) * (false[middle] - false[first]))


def give_opinion(case: dict[str, Any]) -> dict[str, float]:
    """Compute the statistics of one case by this project.

    Area and power belong to :func:`trace_hull`, as in the other library.
    """
    scores = np.concatenate([case["present"], case["absent"]])
    present = np.repeat([1.0, 0.0], [len(case["present"]), len(case["absent"])])
    counts = count_positives(scores, present, case["threshold"])
    guesses = round(counts.true + counts.false)
    false, true = trace_hull(scores, present)
    return {
        "by_one_point": bound_epsilon(counts, case["delta"], 1 - case["error"]),
        "area": float(np.trapezoid(true, false)),
        "power": float(np.interp(case["false_positives"], false, true)),
        "by_guesses": bound_epsilon_by_guesses(
            len(scores), guesses, round(counts.true), case["delta"], 1 - case["error"]
        ),
    }


def find_differences(opinions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Find the statistics at which the libraries differ by more than the tolerance."""
    return (each for each in opinions if not abs(each["here"] - each["jax_privacy"]) <= TOLERANCE)
