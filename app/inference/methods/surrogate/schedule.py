"""How the budget of a surrogate is spent: which queries, at which noise.

All of it follows from the noise multiplier, the sampling rate, the slots and the number of parameters, so it is fixed
before the first row is read. With s the share of a query, its noise multiplier is ``sigma / sqrt(s)``; shares sum
to one, so that at q = 1 the whole costs what one Gaussian of ``sigma`` costs.

Dimensionless numbers decide the rest. ``noise = (sigma D / q)^2 / (2 slots)`` is about what a single score would
lose, in nats; ``resolution = sigma D^2 / (q slots)`` is the noise of a matrix against what it tells.
"""

from dataclasses import dataclass

import numpy as np

from app.inference.core.model import Array64
from app.inference.private_zone.mechanisms import MAX_SCALE

LENGTHS_SHARE, MOST_LENGTHS_SHARE = 0.0005, 0.02
LENGTHS_NOISE = 0.05
"""Noise in a bin of lengths, relative to the slots, beyond which bins are hardly seen, and get more than the least."""
MEANS_SHARE, TAILS_SHARE = 0.01, 0.01
MOMENTS_SHARE, SEARCHING_MOMENTS_SHARE = 0.02, 0.05
"""More where matrices are clear and the way is long: wrong scales to begin with take rounds to mend."""
INFORMATION_SHARE, AVERAGED_INFORMATION_SHARE, QUIET_INFORMATION_SHARE = 0.2, 0.14, 0.17
FEWEST_OPENINGS = 3
FEWEST_ROUNDS, MOST_ROUNDS = 8, 13
UNRESOLVED = 1.2
"""Above this value of ``sigma D^2 / (q slots)``, an information matrix begins to drown in its noise."""
COLUMNWISE = 3.0
"""Above this one, it is asked for by single columns."""

CROWDED = 0.3
"""Above this one, single matrices are mostly noise."""
QUIET = 0.4
"""Below this many nats by a single score, late rounds are asked near the mode."""
HIDING = 0.1
"""Above so many, a level that noise hides is worth more than the noise of what room it needs."""

GROWTH, CROWDED_GROWTH, DIRECT_GROWTH = 1.4, 1.25, 1.6
"""Of the share of scores from round to round: late ones are asked closest to the mode. All the more so where one step
leads there, and less where noise in matrices is what keeps all of them from it."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """``sigma`` is the one-shot noise multiplier, ``rate`` the sampling rate q, ``dimension`` D.

    ``informed``: whether information matrices are asked for, or known up to the number of units. ``units``: their
    noised number, once it is known; what is planned, rounds and shares, does not depend on it. ``one_predictor``:
    whether the information follows from one linear predictor, so that matrices of several rounds can be averaged.
    ``labels``: whether targets are 0 or 1. ``asked_rounds``: their number, where a request or a plan fixed it already;
    ``means`` and ``tails``: whether these may be asked for, where something follows from them.
    """

    sigma: float
    rate: float
    slots: int
    dimension: int
    informed: bool = True
    asked_rounds: int | None = None
    units: float | None = None
    one_predictor: bool = False
    labels: bool = False
    means: bool = True
    tails: bool = True

    @property
    def effective_sigma(self) -> float:
        """The noise multiplier of sums over all slots: ``sigma / q``."""
        return self.sigma / self.rate

    @property
    def counted(self) -> float:
        """How many units there seem to be: bounds follow them, or else clip everyone where most slots are empty."""
        return float(self.slots) if self.units is None else self.units

    @property
    def noise(self) -> float:
        """About the nats that one score of the whole budget would lose."""
        return 0.5 * (self.effective_sigma * self.dimension) ** 2 / self.counted

    @property
    def resolution(self) -> float:
        """The noise of an information matrix of the whole budget against its mean eigenvalue."""
        return self.effective_sigma * self.dimension**2 / self.counted

    @property
    def declared_resolution(self) -> float:
        """The same if every slot held a unit: what is planned depends on no answer."""
        return self.effective_sigma * self.dimension**2 / self.slots

    @property
    def declared_noise(self) -> float:
        """:attr:`noise`, likewise."""
        return 0.5 * (self.effective_sigma * self.dimension) ** 2 / self.slots

    @property
    def columnwise(self) -> bool:
        """Whether information is asked for by columns, around zero: whole matrices would drown in their noise."""
        return self.one_predictor and self.declared_resolution > COLUMNWISE

    @property
    def crowded(self) -> bool:
        """Whether single matrices are mostly noise, by declared facts, and asked for nevertheless."""
        return self.informed and self.one_predictor and CROWDED < self.declared_resolution <= COLUMNWISE

    @property
    def quiet(self) -> bool:
        """Whether scores tell so much, by declared facts, that the search arrives early; and matrices are clear."""
        clear = self.declared_resolution <= CROWDED and self.declared_noise < QUIET
        return self.informed and self.one_predictor and clear

    @property
    def hides_levels(self) -> bool:
        """Whether noise is enough, by declared facts, for matrices to leave room to levels that it may hide."""
        return self.declared_noise > HIDING

    @property
    def searching(self) -> bool:
        """Whether matrices are clear, by declared facts, and the way to the mode is long."""
        clear = self.declared_resolution <= CROWDED
        return self.informed and self.one_predictor and clear and not self.quiet

    @property
    def averages(self) -> bool:
        """Whether the average of matrices over the rounds is kept."""
        return self.informed and self.one_predictor and not self.columnwise

    @property
    def rounds(self) -> int:
        """Fewer where information matrices are noisy: there is less to be had from asking them again."""
        if self.asked_rounds is not None:
            return self.asked_rounds
        return int(np.clip(round(11 - 3 * np.log(self.resolution)), FEWEST_ROUNDS, MOST_ROUNDS))

    @property
    def score_shares(self) -> Array64:
        """``(rounds,)``: what is left, growing."""
        noisy = self.crowded or self.columnwise
        rate = CROWDED_GROWTH if noisy else GROWTH if self.informed else DIRECT_GROWTH
        growth = rate ** np.arange(float(self.rounds))
        matrices = self.rounds * self.information_share if self.informed else 0.0
        first = 2 * self.lengths_share + self.means_share + self.moments_share + self.tails_share
        left = 1 - first - matrices
        return np.asarray(left * growth / growth.sum())

    @property
    def lengths_share(self) -> float:
        """Of each histogram of lengths; more than the least only where a search depends on columns' scales."""
        if not (self.informed and self.one_predictor):
            return LENGTHS_SHARE
        share = (self.effective_sigma / (LENGTHS_NOISE * self.slots)) ** 2
        return float(np.clip(share, LENGTHS_SHARE, MOST_LENGTHS_SHARE))

    @property
    def means_share(self) -> float:
        """Of the sum of means that squares are centred by; 0 where they are not."""
        asks = self.means and self.informed and self.one_predictor and not self.columnwise
        return MEANS_SHARE if asks else 0.0

    @property
    def tails_share(self) -> float:
        """Of the sum that tells columns' tails; 0 where targets tell without a bound, or matrices are mostly noise."""
        asks = self.tails and self.labels and self.means_share > 0 and not self.crowded
        return TAILS_SHARE if asks else 0.0

    @property
    def openings(self) -> int:
        """Queries before the first round."""
        return FEWEST_OPENINGS + int(self.means_share > 0) + int(self.tails_share > 0)

    @property
    def moments_share(self) -> float:
        """Of the sum of means and squares."""
        return SEARCHING_MOMENTS_SHARE if self.searching else MOMENTS_SHARE

    @property
    def information_share(self) -> float:
        """Of each round's information matrix."""
        if self.quiet:
            return QUIET_INFORMATION_SHARE / self.rounds
        return (AVERAGED_INFORMATION_SHARE if self.averages else INFORMATION_SHARE) / self.rounds

    def multiplier(self, share: float) -> float:
        """The noise multiplier of a query of that share, within what the grid bears."""
        return min(float(self.sigma / np.sqrt(share)), MAX_SCALE)

    def noise_of(self, share: float, clip: float) -> float:
        """Standard deviation of each value of a query of that share, in sums over all slots."""
        return self.multiplier(share) / self.rate * clip
