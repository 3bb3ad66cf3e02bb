"""Rendering of a release's belief in three formats. Equal beliefs give equal bytes.

- JSON: ``{"blocks": [{"name", "family", "arrays": {...}}, ...]}``.
- npz: the arrays ``blocks`` and ``families`` ``(k,)``, and each array of a block as ``block.array``.
- Parquet: one row for each array, with its block, family, name and shape. Its values, in row-major order, are in
  ``numbers`` or in ``texts``; the other column is null.
"""

import io
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.errors import Internal
from app.inference.core.belief import Block, has_fitting_shapes
from app.releases.http.archives import write_npz

_SCHEMA = pa.schema(
    [
        ("block", pa.string()),
        ("family", pa.string()),
        ("array", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("numbers", pa.list_(pa.float64())),
        ("texts", pa.list_(pa.string())),
    ]
)


def render_belief(blocks: Sequence[Block]) -> dict[str, bytes]:
    """Render the blocks in every format of a belief; without blocks there are none.

    Raises:
        Internal: shapes do not match, or a value is not finite.
    """
    if not blocks:
        return {}
    for block in blocks:
        _check(block)
    return {"json": _json(blocks), "npz": _npz(blocks), "parquet": _parquet(blocks)}


def _check(block: Block) -> None:
    numbers = [array for array in block.arrays.values() if _is_numeric(array)]
    if not has_fitting_shapes(block) or not all(np.isfinite(array).all() for array in numbers):
        raise Internal


def _is_numeric(array: NDArray[Any]) -> bool:
    return bool(np.issubdtype(array.dtype, np.number))


def _json(blocks: Sequence[Block]) -> bytes:
    return f'{{"blocks":[{",".join(map(_write_block, blocks))}]}}'.encode()


def _write_block(block: Block) -> str:
    arrays = ",".join(f"{_write(name)}:{_write_array(array)}" for name, array in block.arrays.items())
    return f'{{"name":{_write(block.name)},"family":{_write(block.family)},"arrays":{{{arrays}}}}}'


def _write_array(array: NDArray[Any]) -> str:
    """Write an array row by row: a list of millions of numbers takes several times the memory of their text."""
    if array.ndim > 1:
        return f"[{','.join(map(_write_array, array))}]"
    return _write(array.tolist())


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _npz(blocks: Sequence[Block]) -> bytes:
    arrays: dict[str, NDArray[Any]] = {
        "blocks": np.array([block.name for block in blocks]),
        "families": np.array([block.family for block in blocks]),
    }
    for block in blocks:
        arrays |= {f"{block.name}.{name}": array for name, array in block.arrays.items()}
    return write_npz(arrays)


def _parquet(blocks: Sequence[Block]) -> bytes:
    sink = io.BytesIO()
    arrays = [(block, name, array) for block in blocks for name, array in block.arrays.items()]
    columns: dict[str, list[Any]] = {
        "block": [block.name for block, _, _ in arrays],
        "family": [block.family for block, _, _ in arrays],
        "array": [name for _, name, _ in arrays],
        "shape": [list(array.shape) for _, _, array in arrays],
        "numbers": [array.ravel() if _is_numeric(array) else None for _, _, array in arrays],
        "texts": [None if _is_numeric(array) else array.ravel().tolist() for _, _, array in arrays],
    }
    pq.write_table(pa.table(columns, schema=_SCHEMA), sink, compression="none", store_schema=False)
    return sink.getvalue()
