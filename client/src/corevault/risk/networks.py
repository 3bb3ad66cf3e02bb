"""Mobility networks: a person's most visited places, and the moves between them (thesis, Def. 14 and 15)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from corevault.errors import InvalidArgument
from corevault.risk.traces import Visits

Weights = npt.NDArray[np.float64]
Adjacency = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Network:
    """A network of n places.

    ``visits`` ``(n,)`` are numbers of visits, from many to few. ``weights`` ``(n, n)`` are shares of moves from row to
    column; they sum to 1, or to 0 if there is no move. A place has no move to itself.

    >>> len(make_network(np.array([5, 3, 5, 4]), 2))
    2
    """

    visits: Visits
    weights: Weights

    def __len__(self) -> int:
        return len(self.visits)

    def get_edges(self, *, directed: bool) -> Adjacency:
        """Get whether there are moves from row to column, ``(n, n)``; if not ``directed``, in either direction.

        >>> make_network(np.array([0, 1, 2, 0]), 3).get_edges(directed=True).sum()
        np.int64(3)
        """
        edges = self.weights > 0
        return edges if directed else edges | edges.T


def make_network(visits: Visits, size: int) -> Network:
    """Make the network of the ``size`` most visited places of a trace ``(v,)``.

    Visits to other places are left out before moves are counted. So a move may lead through places that are not in the
    network. Of places with equally many visits, the earlier ones come first.

    >>> make_network(np.array([5, 3, 5, 4, 5]), 2).weights
    array([[0. , 0.5],
           [0.5, 0. ]])

    Raises:
        InvalidArgument: ``size`` is below 1.
    """
    if size < 1:
        raise InvalidArgument(f"A network needs at least one place; size is {size}.")
    places, first, counts = np.unique(visits, return_index=True, return_counts=True)
    order = np.lexsort((first, -counts))[:size]
    rank = {int(places[place]): number for number, place in enumerate(order)}
    kept = np.array([rank[int(place)] for place in visits if int(place) in rank], dtype=np.int64)
    weights = np.zeros((len(order), len(order)))
    np.add.at(weights, (kept[:-1], kept[1:]), 1.0)
    np.fill_diagonal(weights, 0.0)
    return Network(counts[order].astype(np.int64), weights / max(float(weights.sum()), 1.0))
