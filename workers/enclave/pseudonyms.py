"""Keyed pseudonyms of units.

Without the key, neither the order of units nor their buckets follow from their names.
"""

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
KEY_BYTES = 16
_START = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_LENGTH = 8 << 56  # the message's last block: no bytes, and its length
_FINISH = 0xFF


def compute_pseudonyms(key: bytes, units: NDArray[np.float64]) -> Words:
    """Compute SipHash-2-4 of each unit's eight bytes (Aumasson & Bernstein 2012).

    Two units share a pseudonym with probability 2**-64; they would then be protected as one.

    Args:
        key: 16 bytes.
        units: shape ``(n,)``.

    Returns:
        Shape ``(n,)``.
    """
    words = units.view(np.uint64)
    low, high = (np.full(len(words), half) for half in np.frombuffer(key, dtype="<u8"))
    state: list[Words] = [
        half ^ np.uint64(constant) for half, constant in zip((low, high, low, high), _START, strict=True)
    ]
    for block in (words, np.full(len(words), _LENGTH, dtype=np.uint64)):
        state[3] ^= block
        _rounds(state, 2)
        state[0] ^= block
    state[2] ^= np.uint64(_FINISH)
    _rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _rounds(state: list[Words], count: int) -> None:
    for _ in range(count):
        _mix(state, 0, 1, 13, 32)
        _mix(state, 2, 3, 16, 0)
        _mix(state, 0, 3, 21, 0)
        _mix(state, 2, 1, 17, 32)


def _mix(state: list[Words], a: int, b: int, turn: int, after: int) -> None:
    state[a] += state[b]
    state[b] = _rotate(state[b], turn) ^ state[a]
    if after:
        state[a] = _rotate(state[a], after)


def _rotate(words: Words, by: int) -> Words:
    return (words << np.uint64(by)) | (words >> np.uint64(64 - by))
