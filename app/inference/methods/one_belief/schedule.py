"""How the budget is spent: which queries, at which noise, all from declared facts.

The share s of a query is its part of the precision of one Gaussian with the noise multiplier ``sigma``: its own is
``sigma / sqrt(s)``. Shares sum to 1. So at q = 1 all queries together cost what that Gaussian costs.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from app.inference.core.model import Array64
from app.inference.methods.one_belief.tuning import TUNING
from app.inference.private_zone.mechanisms import MAX_SCALE


class Ask(Enum):
    """The kinds of queries in rounds."""

    MATRIX = "matrix"
    RESIDUALS = "residuals"
    EXCESS = "excess"
    SCORE = "score"


class Regime(Enum):
    """What noise lets matrices tell, by declared facts."""

    DIRECT = "direct"  # the information follows from the number of rows
    COLUMNS = "columns"  # whole matrices would drown in their noise
    CROWDED = "crowded"  # single matrices are mostly noise
    SEARCHING = "searching"  # matrices are clear, and the way to the mode is long
    QUIET = "quiet"  # matrices are clear, and the first scores arrive


@dataclass(frozen=True, slots=True)
class Schedule:
    """``sigma`` is the noise multiplier of the whole budget, ``rate`` the sampling rate q, ``dimension`` D.

    ``centres`` and ``tails`` say whether means and tails of columns are asked for; ``unbounded``, whether targets'
    residuals are, so that bounds cut them.
    """

    sigma: float
    rate: float
    slots: int
    dimension: int
    intercept: bool
    centres: bool
    tails: bool
    unbounded: bool
    asked_rounds: int | None = None

    @property
    def effective_sigma(self) -> float:
        """The noise multiplier of sums over all slots, ``sigma / q``."""
        return self.sigma / self.rate

    @property
    def resolution(self) -> float:
        """The noise of a matrix of the whole budget against its mean eigenvalue."""
        return self.effective_sigma * self.dimension**2 / self.slots

    @property
    def score_nats(self) -> float:
        """About the nats that one score of the whole budget would lose."""
        return 0.5 * (self.effective_sigma * self.dimension) ** 2 / self.slots

    @property
    def regime(self) -> Regime:
        """The regime of these facts."""
        if not self.intercept:
            return Regime.DIRECT
        if self.resolution > TUNING.columns:
            return Regime.COLUMNS
        if self.resolution > TUNING.crowded:
            return Regime.CROWDED
        return Regime.QUIET if self.score_nats < TUNING.quiet else Regime.SEARCHING

    @property
    def asks_matrices(self) -> bool:
        """Whether rounds ask information matrices."""
        return self.regime not in {Regime.DIRECT, Regime.COLUMNS}

    @property
    def rounds(self) -> int:
        """The number of rounds: fewer where noise leaves less to gain."""
        if self.asked_rounds is not None:
            return self.asked_rounds
        return int(np.clip(round(11 - 3 * np.log(self.resolution)), TUNING.fewest_rounds, TUNING.most_rounds))

    @property
    def lengths_share(self) -> float:
        """The share of a histogram of lengths."""
        share = (self.effective_sigma / (TUNING.lengths_noise * self.slots)) ** 2
        return float(np.clip(share, TUNING.lengths_share, TUNING.most_lengths_share))

    @property
    def means_share(self) -> float:
        """The share of the sum of means; 0 where squares are not centred."""
        return TUNING.means_share if self.centres and self.regime is not Regime.DIRECT else 0.0

    @property
    def moments_share(self) -> float:
        """The share of the sum of means and squares."""
        return TUNING.searching_moments_share if self.regime is Regime.SEARCHING else TUNING.moments_share

    @property
    def tails_share(self) -> float:
        """The share of the sum of tails; 0 where noise would hide them."""
        clear = self.regime in {Regime.SEARCHING, Regime.QUIET}
        return TUNING.tails_share if self.tails and self.means_share > 0 and clear else 0.0

    @property
    def residuals_share(self) -> float:
        """The share of the histogram of residuals; 0 where declared bounds bound them."""
        return TUNING.residuals_share if self.unbounded else 0.0

    @property
    def information_share(self) -> float:
        """The share of the information matrix of a round."""
        whole = TUNING.quiet_information_share if self.regime is Regime.QUIET else TUNING.information_share
        return whole / self.rounds if self.asks_matrices else 0.0

    @property
    def score_shares(self) -> Array64:
        """The shares ``(rounds,)`` of scores; late ones are asked closest to the mode, so they get more."""
        rate = {
            Regime.DIRECT: TUNING.direct_growth,
            Regime.COLUMNS: TUNING.crowded_growth,
            Regime.CROWDED: TUNING.crowded_growth,
        }.get(self.regime, TUNING.growth)
        growth = rate ** np.arange(float(self.rounds))
        spent = 2 * self.lengths_share + self.means_share + self.moments_share + self.tails_share
        spent += self.residuals_share + len(self.excess_turns) * TUNING.excess_share
        return np.asarray((1 - spent - self.rounds * self.information_share) * growth / growth.sum())

    @property
    def residuals_turn(self) -> int:
        """The round in which residuals are asked for: the search is near the mode by then."""
        return self.rounds // 2

    @property
    def excess_turns(self) -> tuple[int, ...]:
        """The rounds in which the excess is asked for."""
        return tuple(sorted({(2 * self.rounds) // 3, self.rounds - 1})) if self.unbounded else ()

    @property
    def program(self) -> tuple[tuple[Ask, int], ...]:
        """What rounds ask, in order, each with its round."""
        found = list[tuple[Ask, int]]()
        for turn in range(self.rounds):
            if self.asks_matrices:
                found.append((Ask.MATRIX, turn))
            if self.unbounded and turn == self.residuals_turn:
                found.append((Ask.RESIDUALS, turn))
            if turn in self.excess_turns:
                found.append((Ask.EXCESS, turn))
            found.append((Ask.SCORE, turn))
        return tuple(found)

    @property
    def openings(self) -> int:
        """The number of queries before the first round."""
        return 3 + int(self.means_share > 0) + int(self.tails_share > 0)

    def multiplier(self, share: float) -> float:
        """The noise multiplier of a query, within what the grid of answers allows."""
        return min(float(self.sigma / np.sqrt(share)), MAX_SCALE)

    def noise_of(self, share: float, clip: float) -> float:
        """The standard deviation of each value of a query, in sums over all slots."""
        return self.multiplier(share) / self.rate * clip
