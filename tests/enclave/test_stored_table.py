"""The stored table: its size reveals no row, rows are read exactly, and altered bytes are refused."""

import io
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

from app.inference.core.facts import Column
from app.vault.envelope import CHUNK_BYTES, generate_key
from app.vault.errors import VaultError
from app.vault.local_store import LocalStore
from support.vault import COLUMNS, Vault
from workers.enclave import table_format
from workers.enclave.cells import STORED_TYPES, make_null_rows
from workers.enclave.table import StoredTable
from workers.enclave.table_format import Layout, TableKeys, compute_group_rows
from workers.enclave.table_writer import TableWriter

KEYS = TableKeys(bytes(range(32)), "ds_1", 1)
SLOTS = 3 * 1024 + 7
Values = dict[str, NDArray[Any]]


@pytest.fixture(autouse=True)
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_format, "GROUP_ROWS", 1024)


def random_rows(rows: int, seed: int = 0) -> Values:
    rng = np.random.default_rng(seed)
    values: Values = {
        column.name: rng.integers(0, 2, rows).astype(STORED_TYPES[column.type])
        if column.type in {"binary", "categorical"}
        else rng.normal(size=rows)
        for column in COLUMNS
    }
    return {**values, "_present": rng.integers(0, 2, rows).astype(np.uint8)}


def write_table(
    store: LocalStore, values: Values, keys: TableKeys = KEYS, slots: int = SLOTS, step: int = 700
) -> bytes:
    with store.create() as target:
        table = TableWriter(target, keys, Layout(COLUMNS, slots))
        for start in range(0, len(values["_present"]), step):
            table.append({name: array[start : start + step] for name, array in values.items()})
        table.finish()
        with store.open(target.publish()) as file:
            return file.read()


def open_table(
    data: bytes, keys: TableKeys = KEYS, slots: int = SLOTS, columns: Sequence[Column] = COLUMNS
) -> StoredTable:
    return StoredTable(io.BytesIO(data), keys, Layout(tuple(columns), slots))


@pytest.fixture
def store(vault: Vault) -> LocalStore:
    return vault.store


@pytest.mark.parametrize("rows", [0, 1, 1023, 1024, 1025, SLOTS])
def test_rows_are_read_from_their_slots_and_other_slots_are_null(store: LocalStore, rows: int) -> None:
    values = random_rows(rows)
    whole = open_table(write_table(store, values)).gather(np.arange(SLOTS))
    for name, array in values.items():
        assert np.array_equal(whole[name][:rows], array)
        assert not whole[name][rows:].any()


@pytest.mark.parametrize("seed", range(5))
def test_any_selection_equals_plain_indexing(store: LocalStore, seed: int) -> None:
    rng = random.Random(seed)
    values = random_rows(SLOTS)
    table = open_table(write_table(store, values))
    for _ in range(5):
        size = rng.choice([0, 1, 5, 1000, SLOTS - 1, SLOTS])
        indices = np.array(sorted(rng.sample(range(SLOTS), size)), dtype=np.int64)
        for name, array in table.gather(indices).items():
            assert np.array_equal(array, values[name][indices])


def test_gathered_arrays_have_the_protocols_types(store: LocalStore) -> None:
    rows = open_table(write_table(store, make_null_rows(COLUMNS, 1))).gather(np.arange(2))
    types = {name: array.dtype.name for name, array in rows.items()}
    assert types == {
        "age": "float64", "hours": "float64", "sex": "uint16", "race": "uint16",
        "rich": "float64", "ill": "float64", "_present": "uint8",
    }  # fmt: skip


def test_only_the_needed_columns_are_gathered(store: LocalStore) -> None:
    data = write_table(store, random_rows(10))
    table = StoredTable(io.BytesIO(data), KEYS, Layout(COLUMNS, SLOTS), needed=["rich", "age"])
    assert set(table.gather(np.arange(3))) == {"rich", "age", "_present"}


def test_consecutive_blocks_read_every_group_once(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    values = random_rows(SLOTS)
    table = open_table(write_table(store, values))
    groups: list[int] = []
    read = pq.ParquetFile.read_row_group

    def record(file: pq.ParquetFile, group: int, **options: Any) -> Any:
        groups.append(group)
        return read(file, group, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", record)
    blocks = [table.gather(np.arange(start, min(start + 100, SLOTS)))["age"] for start in range(0, SLOTS, 100)]
    assert np.array_equal(np.concatenate(blocks), values["age"])
    assert groups == [0, 1, 2, 3]


@pytest.mark.parametrize("indices", [[1, 0], [1, 1], [-1, 0], [SLOTS], [0, SLOTS]])
def test_indices_must_be_sorted_unique_slots(store: LocalStore, indices: list[int]) -> None:
    with pytest.raises(ValueError, match="indices"):
        open_table(write_table(store, make_null_rows(COLUMNS, 0))).gather(np.array(indices))


def test_w3_size_follows_from_schema_and_slots_alone(store: LocalStore) -> None:
    """W3: empty, full, random, repetitive and half-full tables of one schema and slots have one size."""
    ones = {name: np.ones_like(array) for name, array in random_rows(SLOTS).items()}
    tables = [
        make_null_rows(COLUMNS, 0),
        make_null_rows(COLUMNS, SLOTS),
        ones,
        random_rows(SLOTS),
        random_rows(SLOTS // 2, 1),
    ]
    assert len({len(write_table(store, table)) for table in tables}) == 1


def test_no_statistic_is_in_the_footer(store: LocalStore) -> None:
    """W3: statistics would show the least and largest value."""
    data = write_table(store, random_rows(SLOTS))
    metadata = pq.ParquetFile(io.BytesIO(data), decryption_properties=KEYS.decryption()).metadata
    assert metadata.num_row_groups == 4
    for group in range(4):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            assert column.statistics is None
            assert column.compression == "UNCOMPRESSED"
            assert not column.has_dictionary_page
            assert not column.has_column_index


def test_more_rows_than_slots_are_refused(store: LocalStore) -> None:
    with store.create() as target:
        table = TableWriter(target, KEYS, Layout(COLUMNS, 10))
        table.append(make_null_rows(COLUMNS, 6))
        with pytest.raises(ValueError, match="slots"):
            table.append(make_null_rows(COLUMNS, 5))
        table.finish()


def read_all(data: bytes, keys: TableKeys = KEYS, **options: Any) -> Values:
    with open_table(data, keys, **options) as table:
        return table.gather(np.arange(SLOTS))


@pytest.mark.parametrize(
    "keys",
    [
        TableKeys(generate_key(), "ds_1", 1),
        TableKeys(KEYS.content_key, "ds_2", 1),
        TableKeys(KEYS.content_key, "ds_1", 2),
    ],
    ids=["key", "dataset", "version"],
)
def test_table_does_not_open_for_another_key_dataset_or_version(store: LocalStore, keys: TableKeys) -> None:
    """W1: a table is bound to its content."""
    with pytest.raises(VaultError) as refusal:
        open_table(write_table(store, random_rows(10)), keys)
    assert str(refusal.value) == VaultError.default
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


def test_table_does_not_open_for_another_declaration(store: LocalStore) -> None:
    data = write_table(store, random_rows(10))
    for columns in (COLUMNS[1:], COLUMNS[::-1], (*COLUMNS, Column("z", "real", 0, 1))):
        with pytest.raises(VaultError):
            open_table(data, columns=columns)
    with pytest.raises(VaultError):
        open_table(data, slots=SLOTS - 1)


def test_unencrypted_table_is_refused() -> None:
    """Anybody with write access to the store could have written it."""
    sink = io.BytesIO()
    pq.write_table(pa.table(make_null_rows(COLUMNS, SLOTS), schema=table_format.make_stored_schema(COLUMNS)), sink)
    with pytest.raises(VaultError):
        read_all(sink.getvalue())


def test_flipped_bit_is_refused_or_changes_no_row(store: LocalStore) -> None:
    """A few bits of framing carry no row; all others are authenticated."""
    values = random_rows(SLOTS)
    data = write_table(store, values)
    rng = random.Random(5)
    framing = [*range(8 * 12), *range(8 * (len(data) - 12), 8 * len(data))]
    places = [*framing, *rng.sample(range(8 * len(data)), 300)]
    refused = 0
    for place in places:
        flipped = bytearray(data)
        flipped[place // 8] ^= 1 << place % 8
        try:
            whole = read_all(bytes(flipped))
        except VaultError:
            refused += 1
            continue
        assert all(np.array_equal(whole[name], array) for name, array in values.items())
    assert refused > 0.85 * len(places)


def test_truncated_or_exchanged_bytes_are_refused(store: LocalStore) -> None:
    data, other = write_table(store, random_rows(SLOTS)), write_table(store, random_rows(SLOTS, 1))
    half = len(data) // 2
    tampered = [
        data[:half],
        data[:-1],
        data[1:],
        b"",
        data + b"x",
        data[:half] + other[half:],
        other[:half] + data[half:],
    ]
    for altered in tampered:
        with pytest.raises(VaultError):
            read_all(altered)


def test_groups_of_wide_tables_are_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert compute_group_rows(1) == compute_group_rows(50) == 65_536
    assert compute_group_rows(64) == 32_768
    assert all(compute_group_rows(columns) * 8 * (columns + 1) <= 32 * CHUNK_BYTES for columns in (1, 50, 500, 4096))


class ExpectingFile(io.BytesIO):
    """A table on a server, which counts bytes read outside of the expected ranges."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.expected: list[tuple[int, int]] = []
        self.expected_bytes = self.unexpected_bytes = 0

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        self.expected = list(ranges)
        self.expected_bytes += sum(end - begin for begin, end in ranges)

    def read(self, size: int | None = -1, /) -> bytes:
        begin = self.tell()
        data = super().read(size)
        inside = any(first <= begin and self.tell() <= last for first, last in self.expected)
        self.unexpected_bytes += 0 if inside else len(data)
        return data


def test_only_the_bytes_of_needed_columns_are_read(store: LocalStore) -> None:
    """Two columns of a group are read without the columns between them."""
    data = write_table(store, random_rows(SLOTS))
    source = ExpectingFile(data)
    needed = (COLUMNS[0].name, COLUMNS[-1].name)
    with StoredTable(source, KEYS, Layout(COLUMNS, SLOTS), needed) as table:
        source.unexpected_bytes = 0
        table.gather(np.arange(SLOTS))
        assert source.unexpected_bytes == 0
    assert 0 < source.expected_bytes < 2 * len(data) / 3
