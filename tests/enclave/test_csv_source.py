"""CSV: faults of rows make null rows in their places; faults of the file have a code."""

import io
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.core.facts import Column
from support.vault import COLUMNS, CSV, NAMES, Rows, make_csv_file, parse_csv, to_lists
from workers.enclave import csv_source
from workers.enclave.cells import make_null_rows
from workers.enclave.faults import FileFault
from workers.enclave.parse import parse
from workers.enclave.sources import Caps

A = Column("a", "real", -10.0, 10.0)
B = Column("b", "real", -10.0, 10.0)
ROOMY = Caps(10**6, 1 << 30)


def read_stored(data: bytes, columns: Any = (A, B), slots: int = 10, caps: Caps = ROOMY) -> Rows:
    batches = list(parse(io.BytesIO(data), CSV, columns, slots, caps))
    return to_lists({name: np.concatenate([batch[name] for batch in batches]) for name in make_null_rows(columns, 0)})


cells = st.one_of(
    st.sampled_from(
        ["40", "3.5", "Male", "B", "1", "true", "", "nan", '"', 'a"b', "x,y", "two\nlines", "\udcff", "4\udcfe"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5),
)
rows = st.one_of(
    st.lists(cells, min_size=6, max_size=6), st.lists(cells, min_size=6, max_size=6), st.lists(cells, max_size=9)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(rows, min_size=1, max_size=12), st.permutations(NAMES), st.sampled_from([8 << 20, 300]))
def test_w14_every_row_keeps_its_place(table: list[list[str]], header: list[str], block: int) -> None:
    """W14: ragged rows, bad bytes, quotes and line breaks raise no error; compared with the module ``csv``."""
    data = make_csv_file(table, header)
    longest = max(len(line) for line in make_csv_file([], header).splitlines())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_source, "BLOCK_BYTES", max(block, longest + len(csv_source.END)))
        if not any(table):
            with pytest.raises(FileFault, match="empty"):
                read_stored(data, COLUMNS, 20)
        else:
            assert read_stored(data, COLUMNS, 20) == parse_csv(data, COLUMNS)


def test_ragged_rows_across_blocks_and_pieces_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_source, "BLOCK_BYTES", 2 * len(csv_source.END))
    monkeypatch.setattr(csv_source, "PIECE_ROWS", 7)
    lines = ["1,2" if place % 5 and not 3000 < place < 9000 else "9" * (place % 3 + 1) for place in range(20_000)]
    data = "\n".join(["a,b", *lines]).encode()
    good = [float("," in line) for line in lines]
    result = read_stored(data, slots=20_000)
    assert result["_present"] == good
    assert result["b"] == [2 * value for value in good]


FAULTS = {
    "nothing": (b"", "empty"),
    "blank": (b"\n \r\n\n", "empty"),
    "mark only": (b"\xef\xbb\xbf", "empty"),
    "header only": (b"a,b", "empty"),
    "header and blanks": (b"a,b\n\n\n", "empty"),
    "missing": (b"a\n1\n", "missing_column"),
    "misspelt": (b"a,B\n1,2\n", "missing_column"),
    "unknown": (b"a,b,c\n1,2,3\n", "unknown_column"),
    "index": (b",a,b\n0,1,2\n", "unknown_column"),
    "twice": (b"a,b,a\n1,2,3\n", "malformed"),
    "twice with other spaces": (b"a,b, a\n1,2,3\n", "malformed"),
    "utf-16": ("a,b\n1,2\n".encode("utf-16"), "malformed"),
    "latin-1 header": ("a,b,ä\n1,2,3\n".encode("latin-1"), "malformed"),
    "binary": (b"PAR1\x00\x00\xff\xfe", "malformed"),
    "zip": (b"PK\x03\x04\x14\n\x00\x00", "malformed"),
    "open quote": (b'a,b\n1,2\n3,"4\n5,6\n', "malformed"),
    "open quote in a header": (b'a,"b\n1,2\n', "malformed"),
    "endless row": (b"a,b\n1," + b"9" * (20 << 20), "malformed"),
    "too many": (b"a,b\n" + b"1,2\n" * 11, "too_many_units"),
    "too many ragged": (b"a,b\n" + b"1\n" * 11, "too_many_units"),
    "too many mixed": (b"a,b\n" + b"1\n1,2\n" * 5 + b"1\n", "too_many_units"),
}


@pytest.mark.parametrize(("data", "reason"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_of_the_file_has_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(FileFault) as fault:
        read_stored(data)
    assert fault.value.reason == reason
    assert fault.value.__cause__ is None


@pytest.mark.parametrize("caps", [Caps(3, 1 << 30), Caps(100, 10)], ids=["rows", "bytes"])
def test_file_over_its_caps_is_too_large(caps: Caps) -> None:
    with pytest.raises(FileFault, match="too_large"):
        read_stored(b"a,b\n" + b"1,2\n" * 4, caps=caps)


def test_good_and_ragged_rows_may_fill_all_slots() -> None:
    assert read_stored(b"a,b\n" + b"1,2\n" * 10)["_present"] == [1.0] * 10
    assert read_stored(b"a,b\n" + b"1\n" * 10)["_present"] == [0.0] * 10


@pytest.mark.parametrize(
    "data",
    [b"a,b\n1,2\n", b"b,a\n2,1", b"\xef\xbb\xbfa,b\r\n1,2\r\n", b' a,"b"\n" 1","2"\n', b"\n\na,b\n\n1,2\n\n"],
    ids=["plain", "permuted", "mark", "quoted", "blank lines"],
)
def test_variants_of_a_file_are_the_same_table(data: bytes) -> None:
    assert read_stored(data) == {"a": [1], "b": [2], "_present": [1]}


def test_column_may_be_called_present() -> None:
    columns = (Column("present", "binary"), B)
    assert read_stored(b"present,b\n0,2\n1,\n1,3\n", columns) == {
        "present": [0, 0, 1],
        "b": [2, 0, 3],
        "_present": [1, 0, 1],
    }
