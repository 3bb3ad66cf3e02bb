"""Time for an ingestion: enough for whoever is honest, an end for whoever is not, whatever the rows say."""

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
"""What ``make upload-bench`` once measured of CSV, the slowest kind to parse."""


@pytest.mark.parametrize("size", [0, 1 << 20, 1 << 30, 16 << 30])
def test_an_honest_upload_has_fifty_times_what_it_takes(size: int) -> None:
    assert Limits().cpu_seconds(size, FACTS) > 600 + 50 * size / CSV_BYTES_A_SECOND


def test_time_follows_the_size_of_upload_and_table() -> None:
    small, large = replace(FACTS, columns=(AGE, HOURS)), replace(FACTS, slots=10**8)
    assert Limits().cpu_seconds(1 << 30, FACTS) >= Limits().cpu_seconds(0, FACTS) + 1024
    assert Limits().cpu_seconds(0, large) >= Limits().cpu_seconds(0, FACTS) + 699
    assert Limits().cpu_seconds(0, replace(large, columns=small.columns)) < Limits().cpu_seconds(0, large)
    assert Limits().cpu_seconds(0, replace(large, unit=PEOPLE)) > 10 * Limits().cpu_seconds(0, large)


def test_a_small_file_does_not_hold_a_worker_for_long() -> None:
    assert Limits().cpu_seconds(100_000, FACTS) < 700


def test_slow_machines_stretch_it() -> None:
    assert Limits(time_scale=3).cpu_seconds(0, FACTS) >= 3 * Limits().cpu_seconds(0, FACTS) - 3


def test_w14_the_child_is_told_what_sizes_and_declaration_say(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    """W14: tables of one size, of whatever rows, have the same time."""
    told: list[tuple[int, float]] = []

    def note(instructions: Instructions, timeout_seconds: float) -> Any:
        told.append((instructions.cpu_seconds, timeout_seconds))
        return Failed(transient=False)

    monkeypatch.setattr(import_module("workers.enclave.ingest_parent"), "_run_child", note)
    for data in (b"1" * 10_000_000, b"," * 10_000_000, b"1" * 90_000_000):
        upload = vault.receive(data)
        vault.ingest(replace(upload, parts=(*upload.parts, *vault.receive(data).parts)), slots=1_000)
    seconds = [Limits().cpu_seconds(2 * size, FACTS) for size in (10_000_000, 10_000_000, 90_000_000)]
    assert told == [(cpu, 2 * cpu + 3600) for cpu in seconds]
    assert seconds[0] < seconds[2]
