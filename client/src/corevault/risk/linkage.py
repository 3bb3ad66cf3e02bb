"""An attack that links two traces of one person (thesis, sections 3.3.4 and 3.5).

An attacker has a later part of each trace, with names. Earlier parts are released under pseudonyms. The attacker
ranks all released networks by their similarity to a known one.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from corevault.errors import InvalidArgument
from corevault.risk.kernels import compare_networks
from corevault.risk.networks import make_network
from corevault.risk.traces import Traces

_FIRST, _LAST = 0.3, 0.7
"""Shares of a trace between which it is cut."""
_STEP: Final = (5**0.5 - 1) / 2
"""The golden ratio: its multiples, modulo 1, are spread evenly, so that cuts need no random numbers."""


@dataclass(frozen=True, slots=True)
class Linkage:
    """The result of a linkage attack on L people.

    ``ranks`` ``(L,)`` are the places of the true persons in the attacker's rankings: 1 is a direct hit. People with
    equal similarities share their mean rank.

    >>> Linkage(np.array([1.0, 3.0])).ranks.mean()
    np.float64(2.0)
    """

    ranks: npt.NDArray[np.float64]

    @property
    def privacy_loss(self) -> npt.NDArray[np.float64]:
        """The privacy loss ``(L,)``: how much likelier the true person became, ``P / (1/L) - 1``.

        The attacker gives rank r a probability proportional to ``1/r``. A guess without any knowledge has a
        loss of 0. A loss below 0 is possible: the attacker was misled (thesis, eq. 3.9 and 3.10).

        >>> Linkage(np.array([1.0, 2.0])).privacy_loss.round(3)
        array([ 0.333, -0.333])
        """
        people = len(self.ranks)
        harmonic = float(np.sum(1 / np.arange(1, people + 1)))
        return np.asarray(people / (self.ranks * harmonic) - 1)

    def get_share_within(self, rank: float) -> float:
        """Get the share of people whose true match is among the first ``rank``.

        >>> Linkage(np.array([1.0, 7.0])).get_share_within(5)
        0.5
        """
        return float(np.mean(self.ranks <= rank))

    def summarise(self) -> dict[str, Any]:
        """Summarise the attack in a few numbers.

        >>> Linkage(np.array([1.0, 1.0, 3.0])).summarise()["hit_at_once"]
        0.6666666666666666
        """
        people, loss = len(self.ranks), self.privacy_loss
        return {
            "people": people,
            "hit_at_once": self.get_share_within(1),
            "within_10": self.get_share_within(10),
            "within_a_tenth": self.get_share_within(0.1 * people),
            "mean_rank": float(self.ranks.mean()),
            "mean_rank_by_chance": (people + 1) / 2,
            "median_rank": float(np.median(self.ranks)),
            "median_privacy_loss": float(np.median(loss)),
            "mean_privacy_loss": float(loss.mean()),
        }


def link(traces: Traces, *, size: int = 50, kernel: str = "shortest-paths") -> Linkage:
    """Attack traces: cut each in two, and link the parts by the networks of ``size`` places.

    A trace is cut at a share of its visits between 30 and 70 %, which differs from person to person.

    Raises:
        InvalidArgument: there are fewer than two people, or a trace has fewer than two visits.

    >>> traces = Traces((1, 2), (np.array([0, 1, 0, 1]), np.array([0, 1, 2, 3])), (0, 1, 2, 3))
    >>> link(traces, size=4).ranks.shape
    (2,)
    """
    if len(traces) < 2 or min(len(visits) for visits in traces.visits) < 2:
        raise InvalidArgument("An attack needs two people or more, each with two visits or more.")
    cuts = _FIRST + (_LAST - _FIRST) * (np.arange(len(traces)) * _STEP % 1)
    ends = [int(np.clip(round(cut * len(v)), 1, len(v) - 1)) for cut, v in zip(cuts, traces.visits, strict=True)]
    released = [make_network(visits[:end], size) for visits, end in zip(traces.visits, ends, strict=True)]
    known = [make_network(visits[end:], size) for visits, end in zip(traces.visits, ends, strict=True)]
    return Linkage(rank_true_match(compare_networks(known, released, kernel=kernel)))


def rank_true_match(similarities: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Rank the true match of each row, the one on the diagonal, ``(L,)``; ties get their mean rank.

    >>> rank_true_match(np.array([[0.9, 0.1], [0.5, 0.5]]))
    array([1. , 1.5])
    """
    true = similarities.diagonal()[:, None]
    above, equal = (similarities > true).sum(axis=1), (similarities == true).sum(axis=1)
    return np.asarray(above + (equal + 1) / 2)
