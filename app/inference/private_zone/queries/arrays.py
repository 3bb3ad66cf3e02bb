"""Conversion of queries to arrays and back, bit by bit, for messages between processes."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from app.inference.core.query import Query
from app.inference.private_zone.queries import find_kind

_KIND = "kind"


def to_arrays(query: Query) -> dict[str, NDArray[Any]]:
    """Convert ``query`` to arrays: its kind, and each field by its name.

    Numbers become arrays without a dimension.
    """
    names = [field.name for field in fields(cast(Any, query))]
    return {_KIND: np.array(query.kind)} | {name: np.asarray(getattr(query, name)) for name in names}


def from_arrays(arrays: Mapping[str, NDArray[Any]]) -> Query:
    """Convert arrays to a query: the inverse of :func:`to_arrays`.

    Raises:
        ValueError: for an unknown kind.
        TypeError: for fields that the kind does not have.
    """
    query_class = find_kind(str(arrays[_KIND]))
    if query_class is None:
        raise ValueError("unknown kind of query")
    return query_class(
        **{name: array if array.ndim else array.item() for name, array in arrays.items() if name != _KIND}
    )
