"""A check reads files in bounded memory, and leaves them as they were."""

import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corevault import Schema, WrongType, binary, integer, real

from tests.client.sources import ROWS, SCHEMA, make_sources, upload


@pytest.mark.long
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_large_file_is_checked_in_bounded_memory(kind: str, tmp_path: Path) -> None:
    numbers = [str(n % 90) for n in range(400_000)]
    table = pa.table({"n": numbers, "b": ["1"] * len(numbers)})
    path = tmp_path / f"t.{kind}"
    pq.write_table(table, path) if kind == "parquet" else table.to_pandas().to_csv(path, index=False)
    schema = Schema(integer("n", 0, 90), binary("b"))
    schema.check({"n": [1], "b": [1]})
    tracemalloc.start()
    try:
        check = schema.check(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (check.rows, check.null_rows) == (400_000, 0)
    assert peak < 8 << 20  # the rows as text take 50 MB


@pytest.mark.parametrize(("width", "limit"), [(2, 10_000), (200, 2_500)])
def test_a_parquet_file_is_read_in_batches_of_bounded_size(
    width: int, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has a limit of rows: one row group may hold the whole file."""
    limits: list[int] = []
    sizes: list[int] = []
    read = pq.ParquetFile.iter_batches

    def iter_batches(self: Any, batch_size: int = 65_536, **options: Any) -> Iterator[Any]:
        limits.append(batch_size)
        for batch in read(self, batch_size, **options):
            sizes.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    table = pa.table({f"c{index}": np.zeros(12_000) for index in range(width)})
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=12_000)
    check = Schema(*(real(name, 0, 1) for name in table.column_names)).check(file.getvalue())
    assert (check.rows, check.null_rows) == (12_000, 0)
    assert limits == [limit]
    assert max(sizes) <= limit
    assert width * limit <= 500_000


@pytest.mark.parametrize("kind", ["csv file", "parquet file", "arrow file"])
def test_a_check_restores_the_position_of_a_file(kind: str) -> None:
    file = make_sources(ROWS)[kind]
    assert isinstance(file, io.BytesIO)
    for _ in range(2):
        assert SCHEMA.check(file).rows == 3
        assert file.tell() == 0
    assert upload(file).bodies[-1] == file.getvalue()


def test_a_one_shot_stream_is_refused_by_the_check() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"age\n1\n"

    with pytest.raises(WrongType, match="read only once"):
        SCHEMA.check(chunks())
