"""The catalogue of reasons that a release states with its grade of reliability.

Codes are stable: programs may compare them. The words are fixed, so that no text can depend on rows (W3). Each text
states the meaning first, then a remedy. ``docs/reference/reliability.md`` is checked against this catalogue.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for a grade: a stable code, and its meaning and remedy in words."""

    code: str
    words: str


NOISE_DOMINATES: Final = Reason(
    "noise-dominates",
    "Noise is large compared with the gain over the prior. Use more epsilon, more rows or fewer features.",
)
DOUBT_NOT_STATED: Final = Reason(
    "doubt-not-stated",
    "The release states no covariance of its noise, so its intervals leave the noise out. "
    "Use a method that states it, or more epsilon.",
)
NOISE_NOT_KNOWN: Final = Reason(
    "noise-not-known",
    "The information in the rows is not known well enough to state the size of the noise. "
    "Use more epsilon or more rows.",
)
FEW_ROWS: Final = Reason(
    "few-rows",
    "The answers hardly exceed their noise: the table may be empty or nearly empty. "
    "Use more rows or more epsilon, and declare slots close to the number of rows.",
)
NOT_CONVERGED: Final = Reason(
    "not-converged",
    "The search stopped before it reached the centre of the posterior. "
    "Use more epsilon, more iterations or fewer features.",
)
NOT_FINITE: Final = Reason(
    "not-finite",
    "A figure of the run is not a finite number, so the result cannot be judged. "
    "Use more epsilon or fewer features, and check the declared bounds.",
)
NO_CORRELATIONS: Final = Reason(
    "no-correlations",
    "The posterior has no correlations between parameters, so its intervals may be too narrow. "
    "Use fewer features, or a method that measures correlations.",
)
DEPENDENT_COLUMNS: Final = Reason(
    "dependent-columns",
    "Some columns of the terms are nearly a combination of others, and noise hides by how much. "
    "So intervals of their coefficients may be too narrow. Use fewer terms, more slots or a larger epsilon.",
)
POINTS_DIFFER: Final = Reason(
    "points-differ",
    "The posterior of the points differs from the posterior that they represent. "
    "Request a larger size; a quote states the smallest exact one.",
)
HIDDEN_ROWS: Final = Reason(
    "hidden-rows",
    "Noise could hide a few rows at the far bound of a column that would change the posterior. "
    "Declare narrower bounds, use fewer terms, or leave out columns that are nearly constant.",
)
BOUNDS_CUT: Final = Reason(
    "bounds-cut",
    "Bounds on contributions removed so much that a bias may remain which the answers do not show. "
    "Declare narrower bounds, or use more epsilon.",
)
BETA_CENTRE: Final = Reason(
    "beta-centre",
    "The centre is that of a beta-posterior, and the bias that bounds on contributions add is not stated. "
    "Use it for predictions; for intervals, use beta 0.",
)
MISFIT: Final = Reason(
    "misfit",
    "The rows do not follow the model, so its intervals do not describe them. "
    "Add terms or features, or choose another family.",
)
WIDE_RESIDUALS: Final = Reason(
    "wide-residuals",
    "Targets are further from the model's predictions than the model allows. "
    "Use negative-binomial-regression for counts, or student-t-regression for other numbers. "
    "State a larger dispersion or noise_scale, or fewer degrees of freedom, if the model takes them.",
)
UNEXPLAINED_ANSWERS: Final = Reason(
    "unexplained-answers",
    "The answers disagree with each other by more than noise explains. "
    "Check the declared bounds, and try another model.",
)
RARE_OUTCOME: Final = Reason(
    "rare-outcome",
    "One outcome is so rare that the posterior is not close to a normal distribution. "
    "Use more rows, or merge rare categories of the target.",
)
SEPARABLE: Final = Reason(
    "separable",
    "The features may predict the target without error, so only the prior bounds some coefficients. "
    "State a prior scale that you can defend, or use fewer features.",
)
VARIATIONAL: Final = Reason(
    "variational",
    "The posterior is a variational approximation, whose intervals are too narrow. "
    "Use its centre, or a method that states calibrated intervals.",
)
GROUP_WEIGHTS: Final = Reason(
    "group-weights",
    "The release has weights of groups, and no posterior. Use the weights to choose data, and the client for errors.",
)
CATALOGUE: Final[Mapping[str, Reason]] = {
    reason.code: reason
    for reason in (
        NOISE_DOMINATES,
        DOUBT_NOT_STATED,
        NOISE_NOT_KNOWN,
        FEW_ROWS,
        NOT_CONVERGED,
        NOT_FINITE,
        NO_CORRELATIONS,
        DEPENDENT_COLUMNS,
        POINTS_DIFFER,
        HIDDEN_ROWS,
        BOUNDS_CUT,
        BETA_CENTRE,
        MISFIT,
        WIDE_RESIDUALS,
        UNEXPLAINED_ANSWERS,
        RARE_OUTCOME,
        SEPARABLE,
        VARIATIONAL,
        GROUP_WEIGHTS,
    )
}
"""Every reason by its code, in the order of the reference page."""
