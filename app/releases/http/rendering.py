"""Rendering of a release's points in four formats. Equal pseudocoresets give equal bytes.

Each row is one pseudopoint: the design columns by name, the target as ``y`` if the model has one, and ``weight``.
"""

import csv
import io
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.errors import Internal
from app.inference.core.release import Posterior, Pseudocoreset
from app.releases.http.archives import write_npz


@dataclass(frozen=True, slots=True)
class Table:
    """The points as named columns of shape ``(M,)``; a discrete target ``y`` has integers."""

    names: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]


def render(points: Pseudocoreset, *, discrete_target: bool) -> dict[str, bytes]:
    """Render the points in every format of :data:`app.releases.http.formats.MEDIA_TYPES`.

    Raises:
        Internal: shapes do not match, a value of points or posterior is not finite, or a weight is negative.
    """
    _check(points)
    target = None if points.y is None else points.y.astype(np.int64) if discrete_target else points.y
    table = _table(points, target)
    return {
        "json": _json(table),
        "csv": _csv(table),
        "parquet": _parquet(table),
        "npz": _npz(points, target),
    }


def _check(points: Pseudocoreset) -> None:
    size, width = points.u.shape
    arrays = [points.u, points.weight] + ([] if points.y is None else [points.y])
    fits = (
        len(points.design) == width and all(len(array) == size for array in arrays) and _is_consistent(points.posterior)
    )
    if not fits or not all(np.isfinite(array).all() for array in arrays) or (points.weight < 0).any():
        raise Internal


def _is_consistent(posterior: Posterior | None) -> bool:
    """Return whether the posterior is finite and its shapes match."""
    if posterior is None:
        return True
    dimension, shape = len(posterior.names), posterior.covariance.shape
    fits = posterior.mean.shape == (dimension,) and shape in {(dimension,), (dimension, dimension)}
    return fits and bool(np.isfinite(posterior.mean).all() and np.isfinite(posterior.covariance).all())


def _table(points: Pseudocoreset, target: NDArray[Any] | None) -> Table:
    named = [(column.name, points.u[:, index]) for index, column in enumerate(points.design)]
    if target is not None:
        named.append(("y", target))
    named.append(("weight", points.weight))
    return Table(tuple(name for name, _ in named), tuple(np.ascontiguousarray(values) for _, values in named))


def _rows(table: Table) -> list[list[Any]]:
    return [list(row) for row in zip(*(column.tolist() for column in table.columns), strict=True)]


def _json(table: Table) -> bytes:
    document = {"columns": list(table.names), "rows": _rows(table)}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _csv(table: Table) -> bytes:
    """Render CSV (RFC 4180). Numbers have the shortest form that is read as the same value."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(table.names)
    writer.writerows(_rows(table))
    return text.getvalue().encode()


def _parquet(table: Table) -> bytes:
    sink = io.BytesIO()
    arrow = pa.table([pa.array(column) for column in table.columns], names=list(table.names))
    pq.write_table(arrow, sink, compression="none", store_schema=False)
    return sink.getvalue()


def _npz(points: Pseudocoreset, target: NDArray[Any] | None) -> bytes:
    """Render NumPy arrays.

    They are ``u`` (M, p), ``y`` (M,) if there is a target, ``weight`` (M,), and ``columns`` (p,) of text.
    """
    arrays: dict[str, NDArray[Any]] = {"u": points.u}
    if target is not None:
        arrays["y"] = target
    arrays |= {"weight": points.weight, "columns": np.array([column.name for column in points.design])}
    return write_npz(arrays)
