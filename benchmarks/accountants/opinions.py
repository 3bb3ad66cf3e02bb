"""Statistics of audits by a second library, on simulated scores of known laws."""

from typing import Any, Final

import numpy as np

from app.privacy.audit.bounds import bound_epsilon, count_positives
from app.privacy.audit.guesses import bound_epsilon_by_guesses
from app.privacy.audit.laws import Array64
from app.privacy.audit.shadow import compute_area

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


def compute_power(scores: Array64, present: Array64, false_positives: float) -> float:
    """Compute the true positives at a rate of false positives.

    Between two thresholds it is interpolated.
    """
    order = np.argsort(-scores, kind="stable")
    ordered, is_in = scores[order], present[order]
    last = np.append(ordered[1:] != ordered[:-1], True)
    true = np.append(0.0, np.cumsum(is_in)[last] / is_in.sum())
    false = np.append(0.0, np.cumsum(1 - is_in)[last] / (1 - is_in).sum())
    return float(np.interp(false_positives, *_find_corners(false, true)))


def _find_corners(false: Array64, true: Array64) -> tuple[Array64, Array64]:
    """Find the highest rate of true positives at each rate of false positives."""
    distinct, first = np.unique(false, return_index=True)
    return distinct, np.maximum.reduceat(true, first)


def give_opinion(case: dict[str, Any]) -> dict[str, float]:
    """Compute the statistics of one case by this project."""
    scores = np.concatenate([case["present"], case["absent"]])
    present = np.repeat([1.0, 0.0], [len(case["present"]), len(case["absent"])])
    counts = count_positives(scores, present, case["threshold"])
    guesses = round(counts.true + counts.false)
    return {
        "by_one_point": bound_epsilon(counts, case["delta"], 1 - case["error"]),
        "area": compute_area(scores, present),
        "power": compute_power(scores, present, case["false_positives"]),
        "by_guesses": bound_epsilon_by_guesses(
            len(scores), guesses, round(counts.true), case["delta"], 1 - case["error"]
        ),
    }
