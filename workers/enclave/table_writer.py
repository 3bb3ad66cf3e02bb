"""Writes a content's encrypted table in row groups, with one group in memory."""

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.inference.core.row_source import PRESENT
from app.vault.store import ObjectWriter
from workers.enclave.cells import make_null_rows
from workers.enclave.table_format import Layout, TableKeys, make_stored_schema


class _Sink(io.RawIOBase):
    """A file for the Parquet library that writes to an object writer."""

    def __init__(self, target: ObjectWriter) -> None:
        super().__init__()
        self._target = target
        self._written = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._written

    def write(self, data: Any) -> int:
        written = self._target.write(data)
        self._written += written
        return written


class TableWriter:
    """Writes rows in batches and pads the table with null rows.

    Args:
        target: receives the table; the caller publishes it.
        keys: the keys of its encryption.
        layout: its columns and its number of rows, which do not depend on the rows appended.
    """

    def __init__(self, target: ObjectWriter, keys: TableKeys, layout: Layout) -> None:
        self._rest = layout.rows
        self._filled = 0
        self._schema = make_stored_schema(layout.columns)
        self._group = make_null_rows(layout.columns, min(layout.slots, layout.group_slots) * layout.rows_per_slot)
        self._group_rows = len(self._group[PRESENT])
        self._writer = pq.ParquetWriter(
            _Sink(target),
            self._schema,
            encryption_properties=keys.encryption(),
            compression="none",
            use_dictionary=False,
            write_statistics=False,
            store_schema=False,
        )

    def append(self, values: Mapping[str, NDArray[Any]]) -> None:
        """Append rows: name -> (n,) array of the stored type, with ``present``.

        Raises:
            ValueError: for more rows than the slots hold.
        """
        rows, start = len(values[PRESENT]), 0
        if rows > self._rest - self._filled:
            raise ValueError("more rows than the slots hold")
        while start < rows:
            taken = min(rows - start, self._group_rows - self._filled)
            for name, column in self._group.items():
                column[self._filled : self._filled + taken] = values[name][start : start + taken]
            self._filled += taken
            start += taken
            if self._filled == self._group_rows:
                self._flush()

    def finish(self) -> None:
        """Pad with null rows and complete the file."""
        while self._rest:
            for column in self._group.values():
                column[self._filled :] = 0
            self._flush()
        self._writer.close()

    def _flush(self) -> None:
        rows = min(self._group_rows, self._rest)
        arrays = [pa.array(np.ascontiguousarray(self._group[name][:rows])) for name in self._schema.names]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema), row_group_size=rows)
        self._rest -= rows
        self._filled = 0
