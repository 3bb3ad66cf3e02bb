"""The knobs of mean-field variational inference, beside those of its mechanism."""

from typing import Final

from app.inference.core.knobs import Choice, Parameter
from app.inference.private_zone.mechanisms import CLIP_FLOOR

MOST_FISHER: Final = 100
"""Parameters with a full covariance: a matrix of more is lost in its noise, and fills a release."""
FISHER, MEAN_FIELD = "fisher", "mean-field"
UNITS: Final = 1.0, 3.0
"""What the prior's standard deviations are clamped to, for steps of a coefficient to be in."""
CLIP = Parameter(
    "clip", "number", CLIP_FLOOR, 1e6, "L2 norm C that a unit's score is clipped to; without it, C follows the model."
)
STEP = Parameter(
    "learning_rate",
    "number",
    0,
    10,
    f"AdaGrad's rate, in prior standard deviations, clamped to {UNITS[0]:g} to {UNITS[1]:g}.",
    default=0.5,
    exclusive_minimum=True,
)
AVERAGE = Parameter(
    "average",
    "number",
    0,
    1,
    "Share of the iterates, the last ones, that are averaged; 0: the last alone.",
    default=0.5,
)
COVARIANCE = Choice(
    "covariance",
    (FISHER, MEAN_FIELD),
    "Spend the last tenth of the queries on an information matrix, or release the diagonal of the belief; more than "
    f"{MOST_FISHER} parameters get the latter.",
    FISHER,
)
