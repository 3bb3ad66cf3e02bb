"""Passes over arrays of a row for each unit and a column for each draw that are faster in BLAS. Row zone: total."""

from functools import lru_cache

import numpy as np
import scipy

from app.inference.protocol import Array32


def add_to_rows(values: Array32, amounts: Array32) -> None:
    """Add ``amounts`` ``(n,)`` to every column of ``values`` ``(n, S)``, in place.

    Where columns lie one after the other in memory that is an update of rank one, which takes half of the time that
    broadcasting does.
    """
    if values.flags.f_contiguous:
        scipy.linalg.blas.sger(1, amounts, _ones(values.shape[1]), a=values, overwrite_a=1)
    else:
        values += amounts[:, None]


@lru_cache(maxsize=16)
def _ones(length: int) -> Array32:
    ones = np.ones(length, dtype=np.float32)
    ones.setflags(write=False)
    return ones
