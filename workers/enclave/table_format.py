"""The stored table: encrypted Parquet whose size follows from the schema and the slots alone.

Nothing in it varies with the values: no nulls, no statistics, no dictionary, no compression. Keys and the
associated data ``dataset|version`` bind it to one content.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet.encryption as pe

from app.inference.protocol import PRESENT, Column
from app.vault.envelope import content_context
from workers.enclave.cells import STORED_TYPES

GROUP_ROWS = 65_536
GROUP_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class TableKeys:
    """What a content's table is encrypted with and bound to."""

    content_key: bytes = field(repr=False)
    dataset_id: str
    version: int

    @property
    def associated(self) -> bytes:
        return content_context(self.dataset_id, self.version)

    def encryption(self) -> Any:
        """AES-256-GCM for the footer and every column; the associated data is not stored in the file."""
        return pe.create_encryption_properties(self.content_key, aad_prefix=self.associated, store_aad_prefix=False)

    def decryption(self) -> Any:
        return pe.create_decryption_properties(self.content_key, aad_prefix=self.associated)


def stored_schema(columns: Sequence[Column]) -> pa.Schema:
    """The declared columns in their stored types, then ``present``."""
    types = [(column.name, pa.from_numpy_dtype(np.dtype(STORED_TYPES[column.type]))) for column in columns]
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in [*types, (PRESENT, pa.uint8())]])


def group_rows(columns: int) -> int:
    """Rows of a row group: 65,536, halved until a group of a wide table fits into 32 MiB."""
    rows = GROUP_ROWS
    while rows > 1 and rows * 8 * (columns + 1) > GROUP_BYTES:
        rows //= 2
    return rows
