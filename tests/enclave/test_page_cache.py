"""Pages of a large file are dropped after they were read; pages of other files stay."""

import io
import os
from pathlib import Path

import numpy as np
import pytest

from support.vault import COLUMNS, Vault
from workers.enclave import page_cache, table_format
from workers.enclave.cells import make_null_rows
from workers.enclave.page_cache import DropBehind
from workers.enclave.table import StoredTable
from workers.enclave.table_format import Layout, TableKeys
from workers.enclave.table_writer import TableWriter

KEYS = TableKeys(bytes(range(32)), "ds_1", 1)
GROUP, GROUPS = 1024, 5
LAYOUT = Layout(COLUMNS, GROUP * GROUPS)
AGES = np.random.default_rng(0).normal(size=LAYOUT.slots)
Pieces = list[tuple[int, int]]


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> Pieces:
    """The ranges that the system was advised to drop."""
    ranges: Pieces = []

    def record(_: int, begin: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        ranges.append((begin, begin + length))

    monkeypatch.setattr(os, "posix_fadvise", record)
    monkeypatch.setattr(page_cache, "_LARGEST_PIECE", 100)
    monkeypatch.setattr(table_format, "GROUP_ROWS", GROUP)
    return ranges


@pytest.fixture
def stored(vault: Vault, dropped: Pieces) -> str:
    """The name of a table in the vault's store."""
    with vault.store.create() as target:
        table = TableWriter(target, KEYS, LAYOUT)
        table.append({**make_null_rows(COLUMNS, LAYOUT.slots), "age": AGES})
        table.finish()
        return target.publish()


def file_of(path: Path, size: int) -> Path:
    path.write_bytes(bytes(size))
    return path


@pytest.mark.parametrize(("size", "is_large"), [(500, False), (501, True)])
def test_file_of_more_than_half_of_the_memory_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dropped: Pieces, size: int, *, is_large: bool
) -> None:
    monkeypatch.setattr(page_cache, "read_memory_bytes", lambda: 1000)
    with file_of(tmp_path / "file", size).open("rb") as file:
        drop_behind = DropBehind(file)
        drop_behind.drop(50, 200)
        drop_behind.drop(200, 400)
    assert dropped == ([(0, 200), (100, 400)] if is_large else [])


def test_file_in_memory_is_ignored(monkeypatch: pytest.MonkeyPatch, dropped: Pieces) -> None:
    monkeypatch.setattr(page_cache, "read_memory_bytes", lambda: 0)
    DropBehind(io.BytesIO(bytes(10))).drop(0, 10)
    assert not dropped


def test_memory_is_the_size_of_the_machines_memory() -> None:
    (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert 0.9 * page_cache.read_memory_bytes() <= 1024 * int(line.split()[1]) <= page_cache.read_memory_bytes()


def test_large_table_is_dropped_group_by_group(
    vault: Vault, stored: str, monkeypatch: pytest.MonkeyPatch, dropped: Pieces
) -> None:
    """Each advice ends with the last group read, so pages read ahead stay."""
    monkeypatch.setattr(page_cache, "read_memory_bytes", lambda: 0)
    ends = []
    with StoredTable(vault.store.open(stored), KEYS, LAYOUT) as table:
        for group in range(GROUPS):
            rows = np.arange(group * GROUP, (group + 1) * GROUP)
            assert np.array_equal(table.gather(rows)["age"], AGES[rows])
            metadata = table._file.metadata.row_group(group)
            last = metadata.column(metadata.num_columns - 1)
            ends.append(last.data_page_offset + last.total_compressed_size)
    assert [end for _, end in dropped] == ends
    assert dropped[0][0] == 0
    assert all(begin < end for (begin, _), (_, end) in zip(dropped[1:], dropped, strict=False))


def test_table_of_half_of_the_memory_is_not_dropped(
    vault: Vault, stored: str, monkeypatch: pytest.MonkeyPatch, dropped: Pieces
) -> None:
    with vault.store.open(stored) as file:
        size = os.fstat(file.fileno()).st_size
    monkeypatch.setattr(page_cache, "read_memory_bytes", lambda: 2 * size)
    with StoredTable(vault.store.open(stored), KEYS, LAYOUT) as table:
        table.gather(np.arange(LAYOUT.slots))
    assert not dropped
