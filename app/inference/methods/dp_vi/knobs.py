"""The parameters of mean-field variational inference, without the mechanism's."""

from typing import Final

from app.inference.core.knobs import Choice, Parameter
from app.inference.private_zone.mechanisms import CLIP_FLOOR

MOST_FISHER: Final = 100
"""Largest number of parameters with a full covariance. A larger matrix has too much noise and makes a large release."""
FISHER, MEAN_FIELD = "fisher", "mean-field"
UNITS: Final = 1.0, 3.0
"""Bounds to which the prior's standard deviations are clamped; steps of coefficients are in these units."""
CLIP = Parameter(
    "clip",
    "number",
    CLIP_FLOOR,
    1e6,
    "Clipping norm: the largest L2 norm of a unit's score. By default it is computed from the model.",
)
STEP = Parameter(
    "learning_rate",
    "number",
    0,
    10,
    f"Learning rate of AdaGrad, in prior standard deviations (clamped to {UNITS[0]:g} to {UNITS[1]:g}).",
    default=0.5,
    exclusive_minimum=True,
)
AVERAGE = Parameter(
    "average",
    "number",
    0,
    1,
    "Share of the iterations, at the end, whose iterates are averaged; 0 takes the last iterate alone.",
    default=0.5,
)
COVARIANCE = Choice(
    "covariance",
    (FISHER, MEAN_FIELD),
    "fisher: the last tenth of the queries measure an information matrix, which gives a full covariance. mean-field: "
    f"release a diagonal covariance. With more than {MOST_FISHER} parameters, only mean-field is available.",
    FISHER,
)
