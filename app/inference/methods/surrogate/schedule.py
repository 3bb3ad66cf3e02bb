"""The schedule: the number of queries, their order and their shares of the budget, all from declared facts.

The noise multiplier ``sigma`` belongs to one Gaussian mechanism that spends the whole budget. A query with the share s
of that mechanism's precision has the noise multiplier ``sigma / sqrt(s)``. Shares sum to 1. So without subsampling, all
queries together cost as much as that mechanism.

The regime depends on the noise in a matrix, relative to its eigenvalues.
"""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.surrogate.tuning import TUNING
from app.inference.private_zone.mechanisms import MAX_SCALE


class Ask(Enum):
    """The kinds of queries in rounds."""

    MATRIX = "matrix"
    RESIDUALS = "residuals"
    EXCESS = "excess"
    SCORE = "score"


class Regime(Enum):
    """The regimes of noise, by the information in matrices and scores."""

    DIRECT = "direct"  # the information follows from the number of rows
    COLUMNS = "columns"  # no matrices are asked for: they would be nearly all noise
    CROWDED = "crowded"  # single matrices are mostly noise
    CLEAR = "clear"  # single matrices show more than noise


@dataclass(frozen=True, slots=True)
class Schedule:
    """The schedule of a run.

    ``sigma`` is the noise multiplier of the whole budget, ``rate`` the sampling rate q. ``dimension`` is D, the number
    of parameters. ``centres``: means of columns may be asked for, so that squares are around them. ``tails``: tails of
    columns may be. ``unbounded``: residuals have no natural bound. ``redescending``: far residuals
    have small scores, so scores are widened while the mode is in doubt. ``squares``: the noise scale is unknown.
    ``asked_rounds`` is a requested number of rounds; None: it depends on the noise.
    """

    sigma: float
    rate: float
    slots: int
    dimension: int
    intercept: bool
    centres: bool
    tails: bool
    unbounded: bool
    redescending: bool
    squares: bool
    asked_rounds: int | None = None

    @property
    def effective_sigma(self) -> float:
        """The noise multiplier of sums over all slots, ``sigma / q``."""
        return self.sigma / self.rate

    @property
    def resolution(self) -> float:
        """The noise in a matrix with the whole budget, over its mean eigenvalue.

        A unit's matrix is bounded by about ``D / n``. The noise has D x D such entries, so its norm is D times larger.
        """
        return self.effective_sigma * self.dimension**2 / self.slots

    @property
    def regime(self) -> Regime:
        """The regime of these facts."""
        if not self.intercept:
            return Regime.DIRECT
        if self.resolution > TUNING.columns:
            return Regime.COLUMNS
        return Regime.CROWDED if self.resolution > TUNING.crowded else Regime.CLEAR

    @property
    def asks_matrices(self) -> bool:
        """Whether rounds ask information matrices."""
        return self.regime not in {Regime.DIRECT, Regime.COLUMNS}

    @property
    def rounds(self) -> int:
        """The number of rounds; with more noise there are fewer."""
        if self.asked_rounds is not None:
            return self.asked_rounds
        return min(max(round(11 - 3 * math.log(self.resolution)), TUNING.fewest_rounds), TUNING.most_rounds)

    @property
    def lengths_share(self) -> float:
        """The share of a histogram of lengths: a noise of :attr:`Tuning.lengths_noise` within limits."""
        share = (self.effective_sigma / (TUNING.lengths_noise * self.slots)) ** 2
        return min(max(share, TUNING.lengths_share), TUNING.most_lengths_share)

    @property
    def means_share(self) -> float:
        """The share of the sum of means; 0: it is not asked for, and squares are around zero."""
        return TUNING.means_share if self.centres else 0.0

    @property
    def tails_share(self) -> float:
        """The share of the sum of tails; 0: it is not asked for, because noise would hide tails."""
        asked = self.tails and self.means_share > 0 and self.regime is Regime.CLEAR
        return TUNING.tails_share if asked else 0.0

    @property
    def residuals_share(self) -> float:
        """The share of the histogram of residuals; 0: it is not asked for."""
        return TUNING.residuals_share if self.unbounded else 0.0

    @property
    def information_share(self) -> float:
        """The share of the information matrix of one round; 0: it is not asked for."""
        return TUNING.information_share / self.rounds if self.asks_matrices else 0.0

    @property
    def score_shares(self) -> Array64:
        """The shares ``(rounds,)`` of scores; late scores are nearer the mode, so they get more."""
        growth = TUNING.growth ** np.arange(float(self.rounds))
        spent = 2 * self.lengths_share + self.means_share + TUNING.moments_share + self.tails_share
        spent += self.residuals_share + len(self.excess_turns) * TUNING.excess_share
        return np.asarray((1 - spent - self.rounds * self.information_share) * growth / growth.sum())

    @property
    def residuals_turn(self) -> int:
        """The round of the histogram of residuals: the search is near the mode by then.

        If the histogram is only a check, that is the last round.
        """
        return self.rounds - 1 if self.redescending else self.rounds // 2

    @property
    def cuts_residuals(self) -> bool:
        """Whether scores have a cut.

        Scores that redescend have none if the scale is unknown: the prior's scale is wide, so no residual is far out.
        """
        return self.unbounded and not (self.redescending and self.squares)

    @property
    def excess_turns(self) -> tuple[int, ...]:
        """The rounds with a sum of the excess beyond the cut."""
        asked = self.unbounded and not self.redescending
        return tuple(sorted({(2 * self.rounds) // 3, self.rounds - 1})) if asked else ()

    @property
    def program(self) -> tuple[tuple[Ask, int], ...]:
        """The queries of all rounds, in order, each with the number of its round."""
        program = list[tuple[Ask, int]]()
        for turn in range(self.rounds):
            if self.asks_matrices:
                program.append((Ask.MATRIX, turn))
            if self.unbounded and turn == self.residuals_turn:
                program.append((Ask.RESIDUALS, turn))
            if turn in self.excess_turns:
                program.append((Ask.EXCESS, turn))
            program.append((Ask.SCORE, turn))
        return tuple(program)

    @property
    def openings(self) -> int:
        """The number of queries before the first round."""
        return 3 + int(self.means_share > 0) + int(self.tails_share > 0)

    def multiplier(self, share: float) -> float:
        """Compute the noise multiplier of a query with a ``share``; the grid of answers limits it."""
        return min(float(self.sigma / np.sqrt(share)), MAX_SCALE)

    def noise_of(self, share: float, clip: float) -> float:
        """Compute the standard deviation of the noise, for sums over all slots.

        Args:
            share: of the query, above 0.
            clip: the clipping norm of a unit.
        """
        return self.multiplier(share) / self.rate * clip
