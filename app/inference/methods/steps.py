"""Schedules of gradient descent: the direction and the length of each step.

- ``cosine``: Adam's direction, and lengths that decay to zero along a cosine.
- ``published``: Adam's direction, and the length ``alpha / t`` at step t. The program of *Bayesian Pseudocoresets*
  (2020) takes these steps. Section 4 of the paper states their lengths.
- ``gradient``: the gradient as direction, and the length ``alpha / t``, as in Algorithm 1 of the paper.
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
    "Steps of the gradient descent. cosine: Adam's steps, whose lengths decay to zero along a cosine. published: "
    "Adam's steps, whose lengths decay as 1/t; weights start at N/M and have the unit 1. gradient: as published, but "
    "along the gradient itself, which may diverge.",
    COSINE,
)


@dataclass(frozen=True, slots=True)
class Schedule:
    """``iterations`` steps of one ``kind``; ``rate`` is the length of the first step."""

    kind: str
    rate: float
    iterations: int

    @property
    def is_published(self) -> bool:
        """Whether lengths decay as 1/t."""
        return self.kind != COSINE

    def length(self, iteration: int) -> float:
        """Compute the length of the step at ``iteration``, which counts from 0."""
        if self.is_published:
            return self.rate / (iteration + 1)
        return self.rate * cosine_decay(iteration, self.iterations)

    def turn(self, moments: Adam, gradient: Array64) -> tuple[Adam, Array64]:
        """Return Adam's next moments and the direction to subtract, shaped as ``gradient``.

        The array ``gradient`` may be overwritten.
        """
        return (moments, gradient) if self.kind == GRADIENT else step_adam(moments, gradient)
