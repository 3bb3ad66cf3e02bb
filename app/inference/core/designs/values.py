"""The possible values of design columns, from declared facts."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Values:
    """The possible values of the k design columns of one feature.

    Column j is from ``lower[j]`` to ``upper[j]``, within -1 and 1. ``shares``: the columns are not negative and sum to
    at most 1. ``two_valued``: every value is a bound of its column. ``square`` bounds the sum of the columns' squares.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    shares: bool = False
    two_valued: bool = False
    square: float = math.inf

    @property
    def largest_square(self) -> float:
        """The largest sum of the columns' squares."""
        corners = float(sum(max(low**2, high**2) for low, high in zip(self.lower, self.upper, strict=True)))
        return min(corners, self.square, 1.0 if self.shares else math.inf)

    def times(self, other: "Values") -> "Values":
        """Combine with another feature: products of all pairs of columns, in the order of ``self`` first.

        The squares of all pairs sum to the product of both sums of squares.
        """
        corners = [
            tuple(one * two for one in (self.lower[i], self.upper[i]) for two in (other.lower[j], other.upper[j]))
            for i in range(len(self.lower))
            for j in range(len(other.lower))
        ]
        return Values(
            tuple(min(each) for each in corners),
            tuple(max(each) for each in corners),
            shares=self.shares and other.shares,
            two_valued=self.two_valued and other.two_valued and self.shares is other.shares,
            square=self.largest_square * other.largest_square,
        )


def make_interval(lower: float, upper: float, count: int = 1) -> Values:
    """Make the values of ``count`` columns of numbers in one interval."""
    return Values((lower,) * count, (upper,) * count)
