"""Columns, files, a vault to ingest into, and an independent slow parser."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from nacl.public import PrivateKey

from app.inference.core.facts import Column, DeclaredFacts
from app.vault.envelope import SealedPart, seal_new_dataset_key
from app.vault.local_store import LocalStore
from app.vault.wrapped_keys import WrappedKeys
from app.vault.writer import UploadWriter
from workers.enclave import (
    Ingested,
    Limits,
    OpeningKey,
    Outcome,
    StoredTable,
    Upload,
    ingest,
    make_layout,
    open_table,
)

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW = "application/vnd.apache.arrow.stream"

AGE = Column("age", "integer", 17, 90, impute=38)
HOURS = Column("hours", "real", 1.5, 99.0)
SEX = Column("sex", "categorical", categories=("Female", "Male", " odd", "ünï"))
RACE = Column("race", "categorical", categories=("A", "B"), impute="B")
RICH = Column("rich", "binary")
ILL = Column("ill", "binary", impute=True)
COLUMNS = (AGE, HOURS, SEX, RACE, RICH, ILL)
NAMES = tuple(column.name for column in COLUMNS)

ROW = {"kind": "row"}
FACTS = "f" * 64

Rows = dict[str, list[float]]


def parse_cell(column: Column, cell: str) -> float | None:
    """Convert one CSV cell to its stored value, None if it is missing.

    It uses a regular expression, ``float`` and ``index``, and no code of the real parser.
    """
    trimmed = cell.strip(" \t\n\r\v\f")
    if column.type == "categorical":
        matches = [candidate for candidate in (cell, trimmed) if candidate in column.categories]
        return float(column.categories.index(matches[0])) if matches else None
    if column.type == "binary" and trimmed.lower() in {"true", "false"}:
        return float(trimmed.lower() == "true")
    if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", trimmed, re.ASCII):
        return None
    number = float(trimmed)
    is_odd = column.type == "binary" and number not in {0.0, 1.0}
    if is_odd or math.isinf(number) or (column.type == "integer" and number != math.floor(number)):
        return None
    lower, upper = (0, 1) if column.lower is None or column.upper is None else (column.lower, column.upper)
    return min(max(number, lower), upper)


def parse_row(columns: Sequence[Column], header: list[str], cells: list[str]) -> list[float]:
    """Convert the cells of a row to the stored row, with ``present`` last."""
    null = [0.0] * (len(columns) + 1)
    if len(cells) != len(header):
        return null
    row: list[float] = []
    for column in columns:
        value = parse_cell(column, cells[header.index(column.name)])
        if value is None and column.impute is not None:
            impute = column.categories.index(str(column.impute)) if column.type == "categorical" else column.impute
            value = float(impute)
        if value is None:
            return null
        row.append(value)
    return [*row, 1.0]


def parse_csv(data: bytes, columns: Sequence[Column]) -> Rows:
    """Convert a well-quoted CSV file to the stored table, row by row."""
    text = data.decode("utf-8", errors="surrogateescape")
    header, *lines = [line for line in csv.reader(io.StringIO(text, newline="")) if line]
    rows = [parse_row(columns, header, line) for line in lines]
    names = [*(column.name for column in columns), "_present"]
    return {name: [row[index] for row in rows] for index, name in enumerate(names)}


def make_csv_file(rows: Sequence[Sequence[object]], header: Sequence[str] = NAMES) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode("utf-8", errors="surrogateescape")


@dataclass(frozen=True)
class Vault:
    """A store, a worker's key and one dataset."""

    root: Path
    store: LocalStore
    secret: bytes
    dataset_box: bytes

    @property
    def opening_key(self) -> OpeningKey:
        return OpeningKey(self.secret)

    @property
    def keys(self) -> WrappedKeys:
        """The keys of uploads, in another folder than the uploads."""
        return WrappedKeys(LocalStore(self.root.with_name(f"{self.root.name}-keys")))

    @property
    def sealing_key(self) -> bytes:
        return bytes(PrivateKey(self.secret).public_key)

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.root.rglob("*") if path.is_file()}

    def receive(self, data: bytes, media_type: str = CSV) -> Upload:
        with UploadWriter(self.store, self.sealing_key, "ct_1", 1 << 40) as writer:
            writer.write(data)
            name = writer.finish().name
        self.keys.keep_part(name, writer.box)
        return Upload("ct_1", (SealedPart(name, "ct_1"),), media_type, "key_owner", "ds_1", 1, self.dataset_box, FACTS)

    def ingest(
        self,
        upload: Upload,
        columns: Sequence[Column] = COLUMNS,
        slots: int = 100,
        limits: Limits = Limits(memory_bytes=2 << 30),  # noqa: B008 - frozen
        unit: Mapping[str, Any] = ROW,
    ) -> Outcome:
        facts = DeclaredFacts(tuple(columns), slots, unit, "private")
        return ingest(self.store, self.store, self.opening_key, upload, facts, keys=self.keys, limits=limits)

    def open(
        self,
        table: Ingested,
        columns: Sequence[Column] = COLUMNS,
        slots: int = 100,
        changes: dict[str, Any] | None = None,
        unit: Mapping[str, Any] = ROW,
    ) -> StoredTable:
        arguments: dict[str, Any] = {
            "opening_key": self.opening_key,
            "dataset_id": "ds_1",
            "version": 1,
            "dataset_box": self.dataset_box,
            "wrapped_key": table.wrapped_key,
            "facts_digest": FACTS,
            "layout": make_layout(columns, slots, unit),
        }
        return open_table(self.store, table.table_object, **(arguments | (changes or {})))


def make_vault(root: Path) -> Vault:
    secret = bytes(PrivateKey.generate())
    box = seal_new_dataset_key("ds_1", bytes(PrivateKey(secret).public_key))
    return Vault(root, LocalStore(root / "store"), secret, box)


def to_lists(values: dict[str, np.ndarray[Any, Any]]) -> Rows:
    return {name: array.astype(float).tolist() for name, array in values.items()}
