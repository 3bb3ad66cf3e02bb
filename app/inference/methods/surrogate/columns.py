"""Information that is known of single columns: a Fisher matrix's diagonal, and its intercept's row.

Where D parameters are many for the noise, a whole matrix of D^2 entries tells nothing. Its moments by column cost as
much as 2D entries do, and with the columns' means they centre every column: what is left out are correlations between
features. Answers of all rounds are averaged, older ones with less weight, since information drifts with the parameter.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.declared import Declared
from app.inference.methods.surrogate.moments import Moments

_MEMORY = 0.85
_CLIP_LENGTHS = 0.75
"""Of the clip of unweighted moments, times the mean weight: one and a half root mean square lengths."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A discounted sum of noised moments ``(1 + 2k,)``, of its weights, and of the squared noise in it."""

    total: Array64
    weight: float
    squared_noise: float

    def with_answer(self, answer: Array64, noise: float) -> "Columns":
        """One more answer with noise of that standard deviation."""
        return Columns(
            _MEMORY * self.total + answer, _MEMORY * self.weight + 1, _MEMORY**2 * self.squared_noise + noise**2
        )

    def information(self, scale: float, places: int, known: Declared) -> Array64:
        """``(D, D)``, without the prior."""
        noise = float(np.sqrt(self.squared_noise)) / self.weight
        moments = Moments(self.total / self.weight, scale, noise, known)
        found = moments.population(places, intercept=True, least=0.0)
        return np.asarray(found.count * found.second_moments)


def no_columns(length: int) -> Columns:
    """Before any answer."""
    return Columns(np.zeros(length), 0.0, 0.0)


def clip_of_columns(clip: float, level: float) -> float:
    """From the clip of the unweighted moments and the mean information of a row."""
    return _CLIP_LENGTHS * clip * level
