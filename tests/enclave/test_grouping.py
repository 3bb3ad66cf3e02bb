"""Tables whose unit is a person: a person's rows change one slot only.

This holds for all spellings, orders and numbers of their rows.
"""

import io
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from app.datasets.columns import LARGEST_INTEGER
from app.errors import DependencyUnavailable
from app.inference.core.facts import Column
from app.vault.errors import VaultError
from support.vault import CSV, PARQUET, Vault, make_csv_file
from workers.enclave import Ingested, Layout, Rejected, grouping, make_layout
from workers.enclave.cells import parse_units
from workers.enclave.faults import FileFault
from workers.enclave.grouping import Grouping
from workers.enclave.pseudonyms import compute_pseudonyms
from workers.enclave.scratch import Scratch

pytestmark = pytest.mark.parsing

PERSON = Column("person", "integer", 0, 10**9)
X = Column("x", "real", 0.0, 1e9)
COLUMNS = (PERSON, X)
UNIT = {"kind": "column", "column": "person", "max_rows": 3}
SLOTS = 12
TABLE = make_layout(COLUMNS, SLOTS, UNIT)

Row = tuple[int, float, int]  # person, value, priority
Blocks = list[list[tuple[float, int]]]


def sip(key: bytes, message: bytes) -> int:
    """SipHash-2-4 with plain integers, byte by byte as in the paper."""
    mask = 2**64 - 1
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotl(x: int, b: int) -> int:
        return (x << b | x >> (64 - b)) & mask

    def round_() -> None:
        v[0], v[2] = (v[0] + v[1]) & mask, (v[2] + v[3]) & mask
        v[1], v[3] = rotl(v[1], 13) ^ v[0], rotl(v[3], 16) ^ v[2]
        v[0] = rotl(v[0], 32)
        v[2], v[0] = (v[2] + v[1]) & mask, (v[0] + v[3]) & mask
        v[1], v[3] = rotl(v[1], 17) ^ v[2], rotl(v[3], 21) ^ v[0]
        v[2] = rotl(v[2], 32)

    padded = message + b"\0" * (7 - len(message) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        block = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= block
        round_()
        round_()
        v[0] ^= block
    v[2] ^= 0xFF
    for _ in range(4):
        round_()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_pseudonyms_are_siphash() -> None:
    """Compared with a second implementation.

    That one is checked against the value in the paper's appendix A.
    """
    key = bytes(range(16))
    assert sip(key, bytes(range(15))) == 0xA129CA6149BE45E5
    units = np.array([0.0, 1.0, 7.0, -2.5, 1e300])
    assert compute_pseudonyms(key, units).tolist() == [sip(key, unit.tobytes()) for unit in units]


def group(vault: Vault, rows: Sequence[Row], table: Layout = TABLE, batch: int = 5) -> Blocks:
    """Group ``rows`` that arrive in batches; return the stored blocks, one for each slot."""
    priorities = iter([row[2] for row in rows])
    with Scratch(vault.store.scratch()) as scratch:
        people = Grouping(
            table, scratch, key=b"k" * 16, draw=lambda n: np.array([next(priorities) for _ in range(n)], np.uint64)
        )
        for start in range(0, len(rows), batch):
            piece = rows[start : start + batch]
            present = np.array([row[1] > 0 for row in piece], np.uint8)
            values = {"x": np.array([row[1] for row in piece]), "_present": present}
            people.add(np.array([float(row[0]) for row in piece]), values)
        batches = list(people.rows())
    joined = [np.concatenate([values[name] for values in batches]).tolist() for name in ("x", "_present")]
    flat = list(zip(*joined, strict=True))
    most = table.rows_per_slot
    return [flat[start : start + most] for start in range(0, len(flat), most)]


def slow(rows: Sequence[Row], most: int) -> dict[int, list[tuple[float, int]]]:
    """Compute the rows that each person keeps, with a dictionary and ``sorted``."""
    people: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        people[row[0]].append(row)
    return {
        person: [(x, int(x > 0)) for _, x, _ in sorted(mine, key=lambda row: (row[1] == 0, row[2]))[:most]]
        for person, mine in people.items()
    }


def tables() -> st.SearchStrategy[list[Row]]:
    """Rows of at most twelve people, with different priorities; a value of zero is a null row."""
    places = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 3)), min_size=1, max_size=60)
    return st.tuples(places, st.randoms(use_true_random=False)).map(
        lambda drawn: [
            (
                person,
                1.0 + index if value else 0.0,
                drawn[1].getrandbits(58) << 6 | index,
            )  # all priorities are different
            for index, (person, value) in enumerate(drawn[0])
        ]
    )


@pytest.fixture(params=[1, 7, 64], ids=["one bucket", "seven buckets", "buckets of few rows"])
def buckets(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Limit the memory so that rows are written to disk."""
    count = int(request.param)
    monkeypatch.setattr(grouping, "_count_buckets", lambda _: count)
    monkeypatch.setattr(grouping, "BUCKET_BYTES", 33 * 9)
    monkeypatch.setattr(grouping, "PIECE_BYTES", 33 * 4)
    return count


@settings(max_examples=60, deadline=None)
@given(rows=tables(), person=st.integers(0, 11), shuffled=st.randoms(use_true_random=False))
def test_w5_removing_a_person_removes_one_block(
    vault_of_module: Vault, rows: list[Row], person: int, shuffled: Any
) -> None:
    """W5: every other slot keeps its rows, also if the person had scattered or too many rows."""
    blocks = group(vault_of_module, rows)
    others = [row for row in rows if row[0] != person]
    shuffled.shuffle(others)
    without = group(vault_of_module, others)
    mine = slow(rows, 3).get(person)
    if mine is None:
        assert without == blocks
        return
    mine += [(0.0, 0)] * (3 - len(mine))
    (place,) = [place for place in range(len(blocks)) if blocks[:place] + blocks[place + 1 :] == without][:1]
    assert sorted(blocks[place]) == sorted(mine)


@settings(max_examples=30, deadline=None)
@given(rows=tables(), person=st.integers(0, 11))
def test_w5_replacing_a_persons_rows_by_null_rows_changes_one_slot(
    vault_of_module: Vault, rows: list[Row], person: int
) -> None:
    """W5: this is the neighbouring relation; no other row moves."""
    before = group(vault_of_module, rows)
    after = group(vault_of_module, [(who, 0.0 if who == person else x, priority) for who, x, priority in rows])
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    had_any = any(who == person and x > 0 for who, x, _ in rows)
    assert changed == ([[(0.0, 0)] * 3] if had_any else [])


def test_each_person_keeps_the_rows_of_the_slow_grouping(vault: Vault, buckets: int) -> None:
    """W5: the number of buckets and the writes to disk have no effect."""
    rng = np.random.default_rng(buckets)
    rows = [(int(rng.integers(0, 12)), float(rng.integers(0, 9)), int(rng.integers(0, 2**63))) for _ in range(300)]
    expected = slow(rows, 3)
    assert sorted(group(vault, rows)) == sorted([*mine, *[(0.0, 0)] * (3 - len(mine))] for mine in expected.values())


def test_w3_scratch_file_is_encrypted_and_has_no_name(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "BUCKET_BYTES", 100)
    file = vault.store.scratch()
    assert vault.files() == {}
    scratch = Scratch(file)
    people = Grouping(TABLE, scratch)
    people.add(np.array([123456.0] * 50), {"x": np.full(50, 31337.25), "_present": np.ones(50, np.uint8)})
    file.seek(0)
    written = file.read()
    assert len(written) > 50 * 8
    for value in (123456.0, 31337.25):
        assert np.float64(value).tobytes() not in written
    file.seek(20)
    file.write(bytes([written[20] ^ 1]))
    with pytest.raises(VaultError):
        list(people.rows())
    scratch.__exit__(None, None, None)


def test_full_disk_is_not_a_fault_of_the_file() -> None:
    with open("/dev/full", "r+b", buffering=0) as full, pytest.raises(DependencyUnavailable):  # noqa: PTH123
        Scratch(full).put(0, b"x")


@pytest.mark.parametrize("people", [SLOTS, SLOTS + 1])
def test_more_people_than_slots_are_too_many(vault: Vault, buckets: int, people: int) -> None:
    rows = [(person, 1.0, person) for person in range(people)] * 5
    if people == SLOTS:
        assert len(group(vault, rows)) == SLOTS
        return
    with pytest.raises(FileFault) as fault:
        group(vault, rows)
    assert fault.value.reason == "too_many_units"


def test_w14_no_choice_of_names_fills_one_bucket(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: ids with equal high or low bits are distributed as evenly as all others."""
    monkeypatch.setattr(grouping, "_count_buckets", lambda _: 16)
    table = make_layout(COLUMNS, 4096, UNIT)
    for step in (1, 4096, 65_536):
        with Scratch(vault.store.scratch()) as scratch:
            people = Grouping(table, scratch)
            people.add(np.arange(4096.0) * step, {"x": np.ones(4096), "_present": np.ones(4096, np.uint8)})
            sizes = [len(batch["x"]) // 3 for batch in people.rows()]
        assert sum(sizes) == 4096
        assert max(sizes) < 256 + 6 * 16


IDS = {
    "integer": (PERSON, ["7", "007", " 7 ", "7.0", "+7", "7e0", "70e-1"]),
    "real": (Column("person", "real", -10, 10), ["0", "-0", "0.0", "-0.0", ".0", "0e9"]),
    "binary": (Column("person", "binary"), ["1", "true", "TRUE", "1.0"]),
    "categorical": (Column("person", "categorical", categories=("b", "a")), ["a", " a", "a "]),
}


@pytest.mark.parametrize(("column", "spellings"), IDS.values(), ids=IDS.keys())
def test_spellings_of_one_id_name_one_person(column: Column, spellings: list[str]) -> None:
    units = parse_units(column, pa.array(spellings))
    assert len(set(units.view(np.uint64).tolist())) == 1


NO_UNIT = {
    "integer": (PERSON, ["", "x", "nan", "inf", "7.5", "-1", "1000000001", "1e300"]),
    "large integers": (Column("person", "integer", 0, LARGEST_INTEGER), [str(2**53), str(2**53 + 1)]),
    "categorical": (Column("person", "categorical", categories=("a",)), ["", "A", "b"]),
    "binary": (Column("person", "binary"), ["", "2", "yes", "0.5"]),
}


@pytest.mark.parametrize(("column", "cells"), NO_UNIT.values(), ids=NO_UNIT.keys())
def test_invalid_id_names_no_person(column: Column, cells: list[str]) -> None:
    """W5: this includes ids outside the declared bounds: clamping would merge different people."""
    assert np.isnan(parse_units(column, pa.array(cells))).all()


def read(vault: Vault, outcome: object, slots: int = SLOTS) -> NDArray[Any]:
    assert isinstance(outcome, Ingested)
    with vault.open(outcome, COLUMNS, slots, unit=UNIT) as table:
        assert (table.slots, table.rows_per_slot) == (slots, 3)
        gathered = table.gather(np.arange(slots))
    assert set(gathered) == {"x", "_present"}
    assert all(len(values) == 3 * slots for values in gathered.values())
    return np.asarray(gathered["x"]).reshape(slots, 3)


def test_upload_of_people_has_one_slot_for_each_person(vault: Vault) -> None:
    """The rows have many spellings, are out of order and too many; one has no person, and one is ragged."""
    rows: list[list[str]] = [
        ["7", "1"],
        ["9", "10"],
        ["007", "2"],
        ["", "5"],
        ["x"],
        ["7.0", "3"],
        [" 7", "4"],
        ["9", ""],
    ]
    x = read(vault, vault.ingest(vault.receive(make_csv_file(rows, ("person", "x"))), COLUMNS, SLOTS, unit=UNIT))
    blocks = [set(block[block > 0]) for block in x if block.any()]
    assert sorted(map(len, blocks)) == [1, 3]
    assert {10.0} in blocks
    assert max(blocks, key=len) < {1.0, 2.0, 3.0, 4.0}


def test_parquet_file_may_have_more_rows_than_slots(vault: Vault) -> None:
    sink = io.BytesIO()
    table = pa.table({"person": np.repeat(np.arange(SLOTS), 50), "x": np.full(50 * SLOTS, 2.0)})
    pa.parquet.write_table(table, sink)
    x = read(vault, vault.ingest(vault.receive(sink.getvalue(), PARQUET), COLUMNS, SLOTS, unit=UNIT))
    assert (x == 2.0).all()


@pytest.mark.parametrize(("people", "each"), [(SLOTS + 1, 1), (SLOTS + 1, 9)])
def test_file_of_too_many_people_is_rejected_and_leaves_no_object(vault: Vault, people: int, each: int) -> None:
    upload = vault.receive(make_csv_file([[p, 1] for p in range(people)] * each, ("person", "x")), CSV)
    before = vault.files()
    assert vault.ingest(upload, COLUMNS, SLOTS, unit=UNIT) == Rejected("too_many_units")
    assert vault.files() == before


@pytest.mark.slow
def test_w3_size_follows_from_schema_slots_and_rows_of_a_slot(vault: Vault) -> None:
    """W3: tables of one, many and no valid people have one size."""
    sizes = set()
    for rows in ([["1", "2"]], [[str(i % SLOTS), "3"] for i in range(500)], [["", "1"]]):
        outcome = vault.ingest(vault.receive(make_csv_file(rows, ("person", "x"))), COLUMNS, SLOTS, unit=UNIT)
        assert isinstance(outcome, Ingested)
        sizes.add(len(vault.files()[outcome.table_object]))
    assert len(sizes) == 1


def test_no_row_group_splits_a_person(monkeypatch: pytest.MonkeyPatch) -> None:
    """W5: the rows of a person are read together."""
    for most in (1, 3, 1000, 65_536, 100_000):
        table = make_layout(COLUMNS, 10**6, {"kind": "column", "column": "person", "max_rows": most})
        assert table.group_slots == max(1, 65_536 // most)
        assert table.columns == (X,)


@pytest.mark.parametrize("unit", [{}, {"kind": "household"}, {**UNIT, "column": "nobody"}, {**UNIT, "max_rows": "3"}])
def test_table_of_an_unknown_unit_is_refused(unit: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"unit|unpack"):
        make_layout(COLUMNS, SLOTS, unit)


def test_priorities_are_random() -> None:
    """W7: no caller sets a seed, and two uploads share no priorities."""
    first, second = grouping.draw_priorities(1000), grouping.draw_priorities(1000)
    assert first.dtype == np.uint64
    assert len(set(first.tolist()) | set(second.tolist())) == 2000
