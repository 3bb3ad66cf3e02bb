"""Lists of numbers as entries store them: in decimal, separated by spaces."""

from collections.abc import Sequence
from functools import lru_cache


def pack(numbers: Sequence[float]) -> str:
    """Write numbers in decimal, separated by spaces. JSON's integers end at 2**53, and one string hashes quickly."""
    return " ".join(map(repr, numbers))


packed_once = lru_cache(maxsize=1024)(pack)
"""For tuples that seldom change: orders, weights, bounds."""


def unpack(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


unpacked_once = lru_cache(maxsize=1024)(unpack)
"""For integers that seldom change: bounds."""


@lru_cache(maxsize=1024)
def unpack_floats(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))
