"""What is let go of behind a reader: of a large file all that was read and nothing to come, of any other nothing."""

import io
import os
from pathlib import Path

import numpy as np
import pytest

from support.vault import COLUMNS, Vault
from workers.enclave import page_cache, table_format
from workers.enclave.cells import null_rows
from workers.enclave.page_cache import Wake
from workers.enclave.table import StoredTable
from workers.enclave.table_format import Layout, TableKeys
from workers.enclave.table_writer import TableWriter

KEYS = TableKeys(bytes(range(32)), "ds_1", 1)
GROUP, GROUPS = 1024, 5
LAYOUT = Layout(COLUMNS, GROUP * GROUPS)
AGES = np.random.default_rng(0).normal(size=LAYOUT.slots)
Pieces = list[tuple[int, int]]


@pytest.fixture
def let_go(monkeypatch: pytest.MonkeyPatch) -> Pieces:
    """What the system was advised to let go of, from where to where."""
    found: Pieces = []

    def advised(_: int, begin: int, length: int, advice: int) -> None:
        assert advice == os.POSIX_FADV_DONTNEED
        found.append((begin, begin + length))

    monkeypatch.setattr(os, "posix_fadvise", advised)
    monkeypatch.setattr(page_cache, "_LARGEST_PIECE", 100)
    monkeypatch.setattr(table_format, "GROUP_ROWS", GROUP)
    return found


@pytest.fixture
def stored(vault: Vault, let_go: Pieces) -> str:
    """The name of a table in the vault's store."""
    with vault.store.create() as target:
        table = TableWriter(target, KEYS, LAYOUT)
        table.append({**null_rows(COLUMNS, LAYOUT.slots), "age": AGES})
        table.finish()
        return target.publish()


def file_of(path: Path, size: int) -> Path:
    path.write_bytes(bytes(size))
    return path


@pytest.mark.parametrize(("size", "goes"), [(500, False), (501, True)])
def test_more_than_half_of_the_memory_is_let_go_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, let_go: Pieces, size: int, *, goes: bool
) -> None:
    monkeypatch.setattr(page_cache, "memory_bytes", lambda: 1000)
    with file_of(tmp_path / "file", size).open("rb") as file:
        behind = Wake(file)
        behind.pass_over(50, 200)
        behind.pass_over(200, 400)
    assert let_go == ([(0, 200), (100, 400)] if goes else [])


def test_what_is_no_file_of_the_systems_is_left_alone(monkeypatch: pytest.MonkeyPatch, let_go: Pieces) -> None:
    monkeypatch.setattr(page_cache, "memory_bytes", lambda: 0)
    Wake(io.BytesIO(bytes(10))).pass_over(0, 10)
    assert not let_go


def test_the_memory_is_the_machines() -> None:
    (line,) = (line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    assert 0.9 * page_cache.memory_bytes() <= 1024 * int(line.split()[1]) <= page_cache.memory_bytes()


def test_a_table_is_let_go_of_group_by_group_and_its_rows_stay(
    vault: Vault, stored: str, monkeypatch: pytest.MonkeyPatch, let_go: Pieces
) -> None:
    """Each advice ends where the group ends that was read last: what is read ahead of it stays."""
    monkeypatch.setattr(page_cache, "memory_bytes", lambda: 0)
    ends = []
    with StoredTable(vault.store.open(stored), KEYS, LAYOUT) as table:
        for group in range(GROUPS):
            rows = np.arange(group * GROUP, (group + 1) * GROUP)
            assert np.array_equal(table.gather(rows)["age"], AGES[rows])
            told = table._file.metadata.row_group(group)
            last = told.column(told.num_columns - 1)
            ends.append(last.data_page_offset + last.total_compressed_size)
    assert [end for _, end in let_go] == ends
    assert let_go[0][0] == 0
    assert all(begin < end for (begin, _), (_, end) in zip(let_go[1:], let_go, strict=False))


def test_a_table_in_half_of_the_memory_stays_for_the_next_query(
    vault: Vault, stored: str, monkeypatch: pytest.MonkeyPatch, let_go: Pieces
) -> None:
    with vault.store.open(stored) as file:
        size = os.fstat(file.fileno()).st_size
    monkeypatch.setattr(page_cache, "memory_bytes", lambda: 2 * size)
    with StoredTable(vault.store.open(stored), KEYS, LAYOUT) as table:
        table.gather(np.arange(LAYOUT.slots))
    assert not let_go
