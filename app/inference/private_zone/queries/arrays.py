"""Queries as arrays and back, bit for bit, for whoever carries them from one process to another."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from app.inference.core.query import Query
from app.inference.private_zone.queries import kind

_KIND = "kind"


def to_arrays(query: Query) -> dict[str, NDArray[Any]]:
    """Every field by its name, and the kind; numbers are arrays without a dimension."""
    names = [field.name for field in fields(cast(Any, query))]
    return {_KIND: np.array(query.kind)} | {name: np.asarray(getattr(query, name)) for name in names}


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Query:
    """The inverse of :func:`to_arrays`.

    Raises:
        ValueError: for a kind that there is not.
        TypeError: for other fields than that kind has.
    """
    found = kind(str(arrays[_KIND]))
    if found is None:
        raise ValueError("no such kind of query")
    return found(**{name: array if array.ndim else array.item() for name, array in arrays.items() if name != _KIND})
