"""People count once in a series, and change nothing about each other."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.core.facts import Column
from app.vault.errors import ObjectMissing, VaultError
from app.vault.store import draw_name
from support.vault import Vault
from tests.enclave.test_grouping import sip
from workers.enclave import make_layout
from workers.enclave.faults import FileFault
from workers.enclave.grouping import Grouping
from workers.enclave.registers import WIDTH, Admission, SeriesOrder, StoredRegister, read_register, write_register
from workers.enclave.scratch import Scratch

pytestmark = pytest.mark.parsing

KEY = bytes(range(32))
PERSON, X = Column("person", "integer", 0, 10**6), Column("x", "real", 0.0, 1e9)
SLOTS, MOST = 12, 2
LAYOUT = make_layout((PERSON, X), SLOTS, {"kind": "column", "column": "person", "max_rows": MOST})
Rows = Sequence[tuple[int, int]]
"""Person and row number of each row of an upload."""


@dataclass(frozen=True)
class Received:
    """An upload to a block; ``ends`` False means that it was rejected or lost after its ingestion."""

    block: int
    rows: Rows
    ends: bool = True


def ingest(vault: Vault, rows: Rows, earlier: Sequence[StoredRegister]) -> tuple[list[list[float]], StoredRegister]:
    """Ingest one upload; return the present values of each unit of the table, and the register."""
    order = SeriesOrder(KEY, draw_name(), tuple(earlier))
    admission = Admission(order, vault.store, SLOTS)
    with Scratch(vault.store.scratch()) as scratch:
        grouping = Grouping(LAYOUT, scratch, admission=admission)
        for start in range(0, len(rows), 5):
            piece = np.array(rows[start : start + 5], dtype=np.float64)
            grouping.add(
                piece[:, 0], {"x": 1000 * piece[:, 0] + piece[:, 1] + 1, "_present": np.ones(len(piece), "u1")}
            )
        batches = list(grouping.rows())
    admission.write()
    units = []
    for batch in batches:
        values, present = batch["x"].reshape(-1, MOST), batch["_present"].reshape(-1, MOST)
        assert not np.any(values[present == 0])
        units += [row[here == 1].tolist() for row, here in zip(values, present, strict=True)]
    return units, StoredRegister(order.register_object, SLOTS)


def receive(vault: Vault, uploads: Sequence[Received]) -> list[dict[int, set[int]]]:
    """Ingest uploads in the order of receipt; return the rows that each table keeps, by person."""
    registers: list[tuple[int, StoredRegister]] = []
    tables = []
    for upload in uploads:
        units, register = ingest(vault, upload.rows, [each for block, each in registers if block != upload.block])
        if upload.ends:
            registers.append((upload.block, register))
        assert all(len(unit) <= MOST for unit in units)
        assert len(units) == len({person for person, _ in upload.rows})
        tables.append({int(unit[0] - 1) // 1000: {int(value - 1) % 1000 for value in unit} for unit in units if unit})
    return tables


def find_owners(uploads: Sequence[Received]) -> dict[int, int]:
    """The block of each person, by a loop over all rows."""
    owners: dict[int, int] = {}
    for upload in uploads:
        for person, _ in upload.rows if upload.ends else ():
            owners.setdefault(person, upload.block)
    return owners


def list_uploads() -> st.SearchStrategy[list[Received]]:
    rows = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 3)), min_size=1, max_size=12, unique=True)
    return st.lists(st.builds(Received, st.integers(0, 3), rows, st.booleans()), min_size=1, max_size=6)


@settings(deadline=None, max_examples=60)
@given(uploads=list_uploads())
def test_a_person_counts_in_the_first_block_only(vault_of_module: Vault, uploads: list[Received]) -> None:
    """W5: uploads may be rejected, and blocks may have several versions, in any order."""
    tables, owners = receive(vault_of_module, uploads), dict[int, int]()
    for place, (upload, table) in enumerate(zip(uploads, tables, strict=True)):
        owners = find_owners(uploads[:place])
        expected = {person for person, _ in upload.rows if owners.get(person, upload.block) == upload.block}
        assert set(table) == expected
        for person, numbers in table.items():
            mine = {number for other, number in upload.rows if other == person}
            assert numbers <= mine
            assert len(numbers) == min(len(mine), MOST)


def test_a_later_content_of_the_first_block_keeps_its_people(vault: Vault) -> None:
    """W5: the register of another block that received them in between has only the people that it keeps."""
    uploads = [Received(0, [(2, 0)]), Received(1, [(2, 0), (3, 0)]), Received(0, [(2, 0), (3, 0)])]
    assert [set(table) for table in receive(vault, uploads)] == [{2}, {3}, {2}]


@pytest.mark.long
@settings(deadline=None, max_examples=60)
@given(uploads=list_uploads(), person=st.integers(0, 11))
def test_leaving_one_person_out_of_all_uploads_changes_one_block(
    vault_of_module: Vault, uploads: list[Received], person: int
) -> None:
    """W5: the relation of the series. Everybody else is kept in the same tables."""
    without = [
        Received(upload.block, [row for row in upload.rows if row[0] != person] or [(99, 0)], upload.ends)
        for upload in uploads
    ]
    changed = set()
    for upload, before, after in zip(
        uploads, *(receive(vault_of_module, each) for each in (uploads, without)), strict=True
    ):
        others = set(before) - {person}
        assert others == set(after) - {99}
        if person in before and upload.ends:
            changed.add(upload.block)
    assert len(changed) <= 1


def test_pseudonyms_are_two_siphashes_of_the_unit() -> None:
    admission = Admission(SeriesOrder(KEY, draw_name(), ()), None, SLOTS)  # type: ignore[arg-type]
    units = np.array([0.0, 7.0, 1e6])
    keys = admission._keys
    expected = [
        b"".join(sip(half, unit.tobytes()).to_bytes(8, "little") for half in (keys[:16], keys[16:])) for unit in units
    ]
    assert [name.ljust(WIDTH, b"\0") for name in admission.name(units).tolist()] == expected


def test_an_ingestion_shows_nothing_of_who_returned(vault: Vault) -> None:
    """W3, W14: registers have one size, and verdicts count everybody in the upload."""
    rows = [(person, 0) for person in range(SLOTS)]
    _, all_of_them = ingest(vault, rows, ())
    sizes = set()
    for earlier in ([], [all_of_them]):
        _, register = ingest(vault, rows, earlier)
        with vault.store.open(register.object_name) as file:
            sizes.add(len(file.read()))
        with pytest.raises(FileFault) as caught:
            ingest(vault, [*rows, (SLOTS, 0)], earlier)
        assert caught.value.reason == "too_many_units"
    assert len(sizes) == 1


def test_padding_is_random_and_people_are_not_in_order(vault: Vault) -> None:
    """Two registers of the same people share these people only."""
    rows = [(3, 0), (5, 0)]
    registers = [read_register(vault.store, KEY, ingest(vault, rows, ())[1]) for _ in range(2)]
    assert len(set(registers[0].tolist()) & set(registers[1].tolist())) == 2
    for register in registers:
        assert len(register) == SLOTS
        assert np.all(register[1:] > register[:-1])


@pytest.mark.parametrize("slots", [1, 65_535, 65_536, 65_537, 200_000])
def test_registers_of_any_size_are_read_back(vault: Vault, slots: int) -> None:
    names = np.frombuffer(secrets.token_bytes(WIDTH * slots), dtype=f"S{WIDTH}")
    register = StoredRegister(draw_name(), slots)
    write_register(vault.store, KEY, register.object_name, names)
    np.testing.assert_array_equal(read_register(vault.store, KEY, register), np.sort(names))


def test_lost_and_altered_registers_are_refused(vault: Vault) -> None:
    """Unknown means refuse: without the register, people would count twice."""
    _, register = ingest(vault, [(1, 0)], ())
    with pytest.raises(ObjectMissing):
        ingest(vault, [(1, 0)], [StoredRegister(draw_name(), SLOTS)])
    for key, other in ((KEY[::-1], register), (KEY, StoredRegister(register.object_name, SLOTS - 1))):
        with pytest.raises(VaultError):
            read_register(vault.store, key, other)
    moved = draw_name()
    with vault.store.open(register.object_name) as file, vault.store.create(moved) as target:
        target.write(file.read())
        target.publish()
    with pytest.raises(VaultError):
        read_register(vault.store, KEY, StoredRegister(moved, SLOTS))
