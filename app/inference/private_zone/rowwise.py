"""Passes over arrays of a row for each unit and a column for each draw. Row zone: total, no branch on a value."""

from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from app.inference.core.model import Array32, Array64


def add_to_rows(values: Array32, amounts: Array32) -> None:
    """Add ``amounts`` ``(n,)`` to every column of ``values`` ``(n, S)``, in place.

    Where columns lie one after the other in memory that is an update of rank one, which takes half of the time that
    broadcasting does.
    """
    if values.flags.f_contiguous:
        scipy.linalg.blas.sger(1, amounts, _ones(values.shape[1]), a=values, overwrite_a=1)
    else:
        values += amounts[:, None]


def zero_rows_unless(values: Array32 | Array64, keep: NDArray[np.bool_]) -> None:
    """Set the rows of ``values`` ``(n,)`` or ``(n, S)`` to zero where ``keep`` ``(n,)`` is false, in place.

    A bit mask does it: NaN becomes zero as well, and each value takes the same steps. Assignment through a boolean
    index takes a time that depends on how many rows it selects, and so counts them (W14).
    """
    integers = np.dtype(f"i{values.itemsize}")
    mask = _mask(keep).astype(integers)
    bits = values.view(integers)
    bits &= mask.reshape(-1, *(1,) * (values.ndim - 1))


def choose(condition: NDArray[np.bool_], chosen: Array64, other: Array64 | np.float64) -> Array64:
    """``np.where``, bit for bit, but in a time that does not depend on how the ``condition`` alternates (W14)."""
    bits = chosen.view(np.int64) ^ other.view(np.int64)
    bits &= _mask(condition).astype(np.int64)
    bits ^= other.view(np.int64)
    return bits.view(np.float64)


def _mask(condition: NDArray[np.bool_]) -> NDArray[np.int8]:
    """All bits where the condition holds, else none."""
    return np.negative(condition.view(np.int8))


@lru_cache(maxsize=16)
def _ones(length: int) -> Array32:
    ones = np.ones(length, dtype=np.float32)
    ones.setflags(write=False)
    return ones
