"""Schedules of steps: lengths and directions.

- ``cosine``: Adam's direction, and lengths that decay to zero by a cosine.
- ``published``: Adam's direction, and lengths ``alpha / t``. The program of *Bayesian Pseudocoresets* (2020) takes
  these steps, and Section 4 states their lengths.
- ``gradient``: the gradient itself, and lengths ``alpha / t``, as Algorithm 1 of the paper is written.
"""

from dataclasses import dataclass
from typing import Final

from app.inference.core.knobs import Choice
from app.inference.core.model import Array64
from app.inference.post.optimisers import Adam, cosine_decay, step_adam

COSINE, PUBLISHED, GRADIENT = "cosine", "published", "gradient"
STEPS: Final = Choice(
    "steps",
    (COSINE, PUBLISHED, GRADIENT),
    "Steps of the descent. cosine: Adam's, which decay to zero by a cosine. published: Adam's, which decay as 1/t; "
    "weights start at N/M and have the unit 1. gradient: the same with the gradient itself, which may diverge.",
    COSINE,
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """``iterations`` steps of one ``kind``; ``rate`` is the length of the first."""

    kind: str
    rate: float
    iterations: int

    @property
    def is_published(self) -> bool:
        """Whether lengths decay as 1/t."""
        return self.kind != COSINE

    def length(self, iteration: int) -> float:
        """Compute the length of a step; the first iteration is 0."""
        if self.is_published:
            return self.rate / (iteration + 1)
        return self.rate * cosine_decay(iteration, self.iterations)

    def turn(self, moments: Adam, gradient: Array64) -> tuple[Adam, Array64]:
        """Compute the direction to subtract, in the shape of ``gradient``, and the next moments.

        It may overwrite ``gradient``.
        """
        return (moments, gradient) if self.kind == GRADIENT else step_adam(moments, gradient)
