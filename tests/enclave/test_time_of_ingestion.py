"""The time limit of an ingestion is generous, and does not depend on rows."""

from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

from app.inference.core.facts import DeclaredFacts
from support.vault import AGE, COLUMNS, HOURS, ROW, Vault
from workers.enclave import Failed, Limits
from workers.enclave.instructions import Instructions

FACTS = DeclaredFacts(COLUMNS, 1_000, ROW, "private")
PEOPLE = {"kind": "column", "column": "age", "max_rows": 50}
CSV_BYTES_A_SECOND = 56e6
"""The speed of CSV in ``make upload-bench``, which is the slowest kind of file to parse."""


@pytest.mark.parametrize("size", [0, 1 << 20, 1 << 30, 16 << 30])
def test_time_limit_is_fifty_times_the_time_of_an_honest_upload(size: int) -> None:
    assert Limits().cpu_seconds(size, FACTS) > 600 + 50 * size / CSV_BYTES_A_SECOND


def test_time_limit_follows_the_size_of_upload_and_table() -> None:
    small, large = replace(FACTS, columns=(AGE, HOURS)), replace(FACTS, slots=10**8)
    assert Limits().cpu_seconds(1 << 30, FACTS) >= Limits().cpu_seconds(0, FACTS) + 1024
    assert Limits().cpu_seconds(0, large) >= Limits().cpu_seconds(0, FACTS) + 699
    assert Limits().cpu_seconds(0, replace(large, columns=small.columns)) < Limits().cpu_seconds(0, large)
    assert Limits().cpu_seconds(0, replace(large, unit=PEOPLE)) > 10 * Limits().cpu_seconds(0, large)


def test_time_limit_of_a_small_file_is_short() -> None:
    assert Limits().cpu_seconds(100_000, FACTS) < 700


def test_time_scale_multiplies_the_time_limit() -> None:
    assert Limits(time_scale=3).cpu_seconds(0, FACTS) >= 3 * Limits().cpu_seconds(0, FACTS) - 3


def test_w14_time_limit_of_the_child_depends_on_no_row(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: uploads of one size have the same time limit."""
    limits: list[tuple[int, float]] = []

    def note(instructions: Instructions, timeout_seconds: float) -> Any:
        limits.append((instructions.cpu_seconds, timeout_seconds))
        return Failed(transient=False)

    monkeypatch.setattr(import_module("workers.enclave.ingest_parent"), "_run_child", note)
    for data in (b"1" * 10_000_000, b"," * 10_000_000, b"1" * 90_000_000):
        upload = vault.receive(data)
        vault.ingest(replace(upload, parts=(*upload.parts, *vault.receive(data).parts)), slots=1_000)
    seconds = [Limits().cpu_seconds(2 * size, FACTS) for size in (10_000_000, 10_000_000, 90_000_000)]
    assert limits == [(cpu, 2 * cpu + 3600) for cpu in seconds]
    assert seconds[0] < seconds[2]
