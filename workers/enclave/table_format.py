"""The format of stored tables: encrypted Parquet whose size reveals nothing about rows.

The size follows from the schema, the slots and the rows of a slot alone. No part varies with the values: there are no
nulls, statistics, dictionaries or compression. Keys and the associated data ``dataset|version`` bind a table to one
content.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet.encryption as pe

from app.inference.core.facts import Column
from app.inference.core.row_source import PRESENT
from app.vault.envelope import make_content_context
from workers.enclave.cells import STORED_TYPES

GROUP_ROWS = 65_536
GROUP_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of a table's rows: slot after slot, each padded with null rows to ``rows_per_slot`` rows."""

    columns: tuple[Column, ...]  # the stored ones
    slots: int
    rows_per_slot: int = 1
    unit: Column | None = None  # the column whose equal values make a unit; never stored

    @property
    def rows(self) -> int:
        return self.slots * self.rows_per_slot

    @property
    def group_slots(self) -> int:
        """The number of slots of a row group; no group splits a slot."""
        return max(1, compute_group_rows(len(self.columns)) // self.rows_per_slot)


def make_layout(columns: Sequence[Column], slots: int, unit: Mapping[str, Any]) -> Layout:
    """Make the layout of a table.

    Args:
        columns: the declared columns.
        slots: the number of units.
        unit: the declared privacy unit.

    Raises:
        ValueError: for an unknown kind of unit, or a unit's column that is not declared.
    """
    match unit:
        case {"kind": "row"}:
            return Layout(tuple(columns), slots)
        case {"kind": "column", "column": name, "max_rows": int(max_rows)}:
            (column,) = (column for column in columns if column.name == name)
            return Layout(tuple(other for other in columns if other != column), slots, max_rows, column)
        case _:
            raise ValueError("unknown kind of privacy unit")


@dataclass(frozen=True, slots=True)
class TableKeys:
    """The key of a table, and the content to which the table is bound."""

    content_key: bytes = field(repr=False)
    dataset_id: str
    version: int

    @property
    def associated(self) -> bytes:
        return make_content_context(self.dataset_id, self.version)

    def encryption(self) -> Any:
        """Encrypt the footer and every column with AES-256-GCM; the file does not contain the associated data."""
        return pe.create_encryption_properties(self.content_key, aad_prefix=self.associated, store_aad_prefix=False)

    def decryption(self) -> Any:
        return pe.create_decryption_properties(self.content_key, aad_prefix=self.associated)


def make_stored_schema(columns: Sequence[Column]) -> pa.Schema:
    """Make the schema of ``columns`` in their stored types, then ``present``."""
    types = [(column.name, pa.from_numpy_dtype(np.dtype(STORED_TYPES[column.type]))) for column in columns]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in [*types, (PRESENT, pa.uint8())]])


def compute_group_rows(columns: int) -> int:
    """Compute the rows of a row group: 65,536, halved until a group fits into 32 MiB."""
    rows = GROUP_ROWS
    while rows > 1 and rows * 8 * (columns + 1) > GROUP_BYTES:
        rows //= 2
    return rows
