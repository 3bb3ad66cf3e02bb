"""Reads rows of a content's encrypted table, so that the oracle can answer queries."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app import crashpoints
from app.errors import DependencyUnavailable
from app.inference.core.row_source import PRESENT
from app.vault.envelope import make_content_context, make_declared_context, unwrap_key
from app.vault.errors import VaultError
from app.vault.store import Expecting, ObjectStore
from workers.enclave.keys import OpeningKey
from workers.enclave.page_cache import DropBehind
from workers.enclave.table_format import Layout, TableKeys, make_stored_schema

Arrays = dict[str, NDArray[Any]]

_READ_BYTES = 1 << 16
"""Size of the buffer for ciphertext, in bytes.

The allocator returns a larger buffer to the system after every column and requests it again for the next. That doubles
the time of reading a table.
"""


class StoredTable:
    """An encrypted table that is read by slot.

    It implements :class:`app.inference.core.row_source.RowSource` and is a context manager.

    The requested slots and columns alone decide which bytes of the file are read. The row group that was read last
    stays decoded in memory. So a caller who gathers consecutive blocks of slots decodes every group once.

    Args:
        source: the encrypted table, seekable; closed with this object.
        keys: the table's key and the content to which the table is bound.
        layout: the columns and rows that the table must have.
        needed: the names of the columns to gather; None for all.

    Raises:
        VaultError: here and in :meth:`gather`. Authentication of the bytes fails, or the table does not have the
            schema and the number of rows of ``layout``. Then no rows are returned, not even some of them.
    """

    def __init__(self, source: BinaryIO, keys: TableKeys, layout: Layout, needed: Sequence[str] | None = None) -> None:
        self.slots = layout.slots
        self.rows_per_slot = layout.rows_per_slot
        self._source = source
        self._drop_behind = DropBehind(source)
        self._columns = [column for column in layout.columns if needed is None or column.name in needed]
        self._binary = frozenset(column.name for column in self._columns if column.type == "binary")
        self._group_slots = layout.group_slots
        self._decoded: tuple[int, Arrays] = (-1, {})
        with _translate_library_errors():
            self._file = pq.ParquetFile(
                _open_native(source), decryption_properties=keys.decryption(), pre_buffer=False, buffer_size=_READ_BYTES
            )
            is_genuine = self._file.schema_arrow.equals(make_stored_schema(layout.columns))
        if not is_genuine or self._file.metadata.num_rows != layout.rows:
            raise VaultError

    def gather(self, indices: NDArray[np.int64]) -> Arrays:
        """Read the rows of the slots ``indices``, slot after slot; each slot has ``rows_per_slot`` rows.

        See :meth:`app.inference.core.row_source.RowSource.gather`.

        Raises:
            ValueError: the indices are not sorted or not unique, or the table has no such slot.
        """
        if len(indices) and not (indices[0] >= 0 and indices[-1] < self.slots and np.all(np.diff(indices) > 0)):
            raise ValueError("indices must be sorted, unique and below the slots")
        pieces: list[Arrays] = []
        begin = 0
        while begin < len(indices) or not pieces:
            group = int(indices[begin]) // self._group_slots if len(indices) else 0
            end = int(np.searchsorted(indices, (group + 1) * self._group_slots))
            pieces.append(self._gather_from_group(group, indices[begin:end] - group * self._group_slots))
            begin = end
        return pieces[0] if len(pieces) == 1 else _join(pieces)

    def close(self) -> None:
        self._decoded = (-1, {})
        self._file.close()
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _gather_from_group(self, group: int, places: NDArray[np.int64]) -> Arrays:
        """Read the slots at ``places`` of a row group.

        If the places are consecutive, the arrays are views of the decoded group; only binary columns are copied.
        """
        crashpoints.reach("mid-gather")
        decoded = self._decode_group(group)
        is_consecutive = len(places) > 0 and int(places[-1]) - int(places[0]) + 1 == len(places)
        index = slice(int(places[0]), int(places[-1]) + 1) if is_consecutive else places
        return {
            name: self._convert(name, values.reshape(-1, self.rows_per_slot)[index].reshape(-1))
            for name, values in decoded.items()
        }

    def _convert(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        return values.astype(np.float64) if name in self._binary else values

    def _decode_group(self, group: int) -> Arrays:
        if self._decoded[0] != group:
            self._decoded = (-1, {})  # free the previous group first, so that memory never holds two
            names = [*(column.name for column in self._columns), PRESENT]
            with _translate_library_errors():
                ranges = self._find_ranges(group, names)
                if isinstance(self._source, Expecting):
                    self._source.expect(ranges)
                table = self._file.read_row_group(group, columns=names, use_threads=False)
                self._decoded = (group, {name: table.column(name).to_numpy() for name in names})
            self._drop_behind.drop(ranges[0][0], ranges[-1][1])
        return self._decoded[1]

    def _find_ranges(self, group: int, names: Sequence[str]) -> list[tuple[int, int]]:
        """Find the byte ranges of the columns ``names`` in a row group."""
        metadata = self._file.metadata.row_group(group)
        chunks = (metadata.column(i) for i in range(metadata.num_columns))
        return [
            (chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size)
            for chunk in chunks
            if chunk.path_in_schema in names
        ]


def open_table(
    store: ObjectStore,
    name: str,
    *,
    opening_key: OpeningKey,
    dataset_id: str,
    version: int,
    dataset_box: bytes,
    wrapped_key: bytes,
    facts_digest: str,
    layout: Layout,
    needed: Sequence[str] | None = None,
    public: bool = False,
) -> StoredTable:
    """Open the table of a content.

    The opening key opens the box with the dataset's key. The dataset's key unwraps the content's key, which decrypts
    the table.

    Args:
        store: the store that contains the table.
        name: the name of the table's object.
        opening_key: the worker's opening key.
        dataset_id: the dataset. The dataset's key, the content's key and the table are bound to it.
        version: the version of the content. The content's key and the table are bound to it.
        dataset_box: the box with the dataset's key.
        wrapped_key: the content's key, wrapped with the dataset's key.
        facts_digest: the digest of the declaration. The content's key is bound to it, except in older contents.
        layout: the columns and rows that follow from the declaration.
        needed: the names of the columns to gather; None for all.
        public: whether the dataset is public. The dataset's key is bound to it.

    Raises:
        VaultError: a key cannot be opened, is bound to other values than these, or the table is not valid (see
            :class:`StoredTable`).
        DependencyUnavailable: the store cannot be reached.
    """
    dataset_key = opening_key.dataset_key(dataset_box, dataset_id, public=public)
    context = make_declared_context(dataset_id, version, facts_digest)
    content_key = _unwrap_content_key(wrapped_key, dataset_key, context, make_content_context(dataset_id, version))
    source = store.open(name)
    try:
        return StoredTable(source, TableKeys(content_key, dataset_id, version), layout, needed)
    except BaseException:
        source.close()
        raise


def _unwrap_content_key(wrapped_key: bytes, dataset_key: bytes, context: bytes, older_context: bytes) -> bytes:
    """Unwrap the content's key; the keys of older contents are bound to ``older_context``.

    Older versions bound the key to the dataset and the version, but not to a digest of the declaration. The second
    attempt is safe: only a holder of the dataset's key can bind the key of a newer content to ``older_context``.
    """
    try:
        return unwrap_key(wrapped_key, dataset_key, context)
    except VaultError:
        return unwrap_key(wrapped_key, dataset_key, older_context)


def _open_native(source: BinaryIO) -> Any:
    """Reopen a local file in the Parquet library; return any other source unchanged.

    The library's own files are read without calls of Python.
    """
    if not isinstance(source, io.BufferedReader) or not isinstance(source.raw, io.FileIO):
        return source
    return pa.OSFile(f"/dev/fd/{source.fileno()}")


def _join(pieces: Sequence[Arrays]) -> Arrays:
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


@contextmanager
def _translate_library_errors() -> Iterator[None]:
    """Convert errors of the Parquet library to ``VaultError``, without their messages.

    Such a message may contain data.
    """
    try:
        yield
    except (MemoryError, DependencyUnavailable):
        raise
    except (pa.ArrowException, OSError, ValueError, LookupError):
        raise VaultError from None
