"""Simulated traces, for examples and tests: people explore, and return to places that they know."""

from typing import Any

import numpy as np

from corevault.errors import InvalidArgument

_DECAY = 0.21
"""After n places, the next one is new with probability ``r n^-0.21`` (Song et al., *Nature Physics* 6, 2010)."""
_LEAST, _MOST = 0.1, 0.9
"""The range of r, which differs from person to person."""


def simulate(*, people: int, places: int, visits: int, rng: np.random.Generator) -> dict[str, list[Any]]:
    """Simulate a table of visits with the columns ``user``, ``place`` and ``time``.

    Each person explores a new place with a probability that falls with the number of known ones. Otherwise the person
    returns to a known place, in proportion to earlier visits there. New places are drawn by their popularity, which
    falls as 1, 1/2, 1/3, ….

    >>> len(simulate(people=3, places=10, visits=20, rng=np.random.default_rng(1))["time"])
    60

    Raises:
        InvalidArgument: a number is below 1.
    """
    if min(people, places, visits) < 1:
        raise InvalidArgument("Give at least one person, one place and one visit.")
    popularity = 1 / np.arange(1, places + 1)
    users, where, when = list[str](), list[str](), list[int]()
    for person in range(people):
        counts, explore = np.zeros(places), rng.uniform(_LEAST, _MOST)
        for hour in range(visits):
            known = np.count_nonzero(counts)
            new = known < places and rng.random() < (explore * known**-_DECAY if known else 1.0)
            odds = np.cumsum(popularity * (counts == 0) if new else counts)
            place = int(np.searchsorted(odds, rng.random() * odds[-1], side="right"))
            counts[place] += 1
            users.append(f"person {person}")
            where.append(f"place {place}")
            when.append(hour)
    return {"user": users, "place": where, "time": when}
