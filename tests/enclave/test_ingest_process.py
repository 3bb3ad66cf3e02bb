"""The parsing process gives one of few verdicts, and ends with its parent."""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.datasets.ingestion import Rejection
from app.inference.core.facts import Column
from app.vault.envelope import generate_key
from app.vault.store import draw_name
from support.vault import ARROW, CSV, PARQUET, Vault
from workers.enclave.faults import NAMING, REASONS
from workers.enclave.instructions import Instructions, Part

pytestmark = pytest.mark.parsing

CHILD = Path(sys.executable).with_name("corevault-ingest")
X = Column("x", "real", 0.0, 1.0)
WORD = Column("x", "categorical", categories=("a",))


def make_instructions(vault: Vault, data: bytes, media_type: str, column: Column = X) -> Instructions:
    upload = vault.receive(data, media_type)
    (sealed_part,) = upload.parts
    key = vault.opening_key.upload_key(vault.keys.part_box(sealed_part.object_name), "ct_1")
    return Instructions(
        parent=os.getpid(),
        incoming_url=vault.store.url,
        vault_url=vault.store.url,
        parts=(Part(sealed_part.object_name, "ct_1", len(data), key),),
        media_type=media_type,
        table_object=draw_name(),
        dataset_id="ds_1",
        version=1,
        columns=(column,),
        slots=200_000,
        unit={"kind": "row"},
        memory_bytes=700 << 20,
        cpu_seconds=20,
        rows=10**6,
        decoded_bytes=256 << 20,
        expected_sha256=None,
        content_key=generate_key(),
        fingerprint_key=generate_key(),
    )


def run_process(instructions: str) -> tuple[bytes, bytes, int]:
    child = subprocess.run([CHILD], input=instructions.encode(), capture_output=True, check=False, timeout=60)
    return child.stdout, child.stderr, child.returncode


def test_owners_can_see_every_reason() -> None:
    assert {str(reason) for reason in Rejection} >= REASONS


def test_instructions_are_restored_from_json_and_show_no_key(vault: Vault) -> None:
    instructions = replace(make_instructions(vault, b"", CSV), columns=(X, WORD, Column("b", "binary", impute=True)))
    for each in (instructions, replace(instructions, expected_sha256=b"\xff" * 32)):
        assert Instructions.from_json(each.to_json()) == each
    for key in (instructions.parts[0].key, instructions.content_key, instructions.fingerprint_key):
        assert repr(key) not in repr(instructions)


def bomb_of_long_words() -> bytes:
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(100_000, np.int32)), pa.array(["x" * (1 << 20)]))
    sink = io.BytesIO()
    pq.write_table(pa.table({"x": words}), sink, compression="zstd", store_schema=False)
    return sink.getvalue()


def bomb_of_zeros() -> bytes:
    sink = io.BytesIO()
    pq.write_table(
        pa.table({"x": pa.array([b"\0" * (1 << 20)] * 300, pa.binary())}),
        sink,
        compression="zstd",
        use_dictionary=False,
        data_page_size=1 << 30,
    )
    return sink.getvalue()


def nested_lists(depth: int, media_type: str) -> bytes:
    kind = pa.float64()
    for _ in range(depth):
        kind = pa.list_(kind)
    table = pa.table({"x": pa.array([], kind)})
    sink = io.BytesIO()
    if media_type == PARQUET:
        pq.write_table(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


def stream_with_wrong_length() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, pa.schema([("x", pa.float64())])) as writer:
        writer.write_batch(pa.record_batch({"x": np.zeros(1000)}))
    rows = (1000).to_bytes(8, "little")
    return sink.getvalue().replace(rows, (1 << 60).to_bytes(8, "little"))


HOSTILE: dict[str, tuple[Callable[[], bytes], str, set[str]]] = {
    "long words": (bomb_of_long_words, PARQUET, {"too_large"}),
    "huge page": (bomb_of_zeros, PARQUET, {"too_large"}),
    "nested_lists parquet": (lambda: nested_lists(90, PARQUET), PARQUET, {"malformed"}),
    "nested_lists stream": (lambda: nested_lists(60, ARROW), ARROW, {"wrong_type"}),
    "lying stream": (stream_with_wrong_length, ARROW, {"malformed", "too_large", "too_many_units"}),
    "header only": (lambda: b"x", CSV, {"empty"}),
    "NUL bytes": (lambda: b"\0" * 1_000_000, CSV, {"malformed"}),
    "huge field": (lambda: b"x\n" + b"9" * (40 << 20) + b"\n", CSV, {"malformed", "too_large"}),
    "wide header": (lambda: b"," * (4 << 20), CSV, {"malformed"}),
    "quotes": (lambda: b"x\n" + b'"' * 999_999, CSV, {"malformed"}),
    "random": (lambda: np.random.default_rng(0).bytes(100_000), CSV, {"malformed", "missing_column"}),
    "random stream": (lambda: b"\xff\xff\xff\xff" + np.random.default_rng(0).bytes(9999), ARROW, {"malformed"}),
}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("data", "media_type", "reasons"), HOSTILE.values(), ids=HOSTILE.keys())
def test_w3_hostile_file_gets_a_verdict_from_the_closed_list(
    vault: Vault, data: Callable[[], bytes], media_type: str, reasons: set[str]
) -> None:
    """W3: the output is one JSON object, without messages of a library."""
    column = WORD if data in {bomb_of_long_words, bomb_of_zeros} else X
    instructions = make_instructions(vault, data(), media_type, column)
    output, _, status = run_process(instructions.to_json())
    verdict = json.loads(output)
    assert status == 0
    assert verdict["verdict"] == "rejected"
    assert set(verdict) <= {"verdict", "reason", "columns"}
    assert verdict["reason"] in reasons & REASONS
    assert verdict.get("columns", []) == ([column.name] if verdict["reason"] in NAMING else [])
    assert set(vault.files()) == {instructions.parts[0].object_name}


@pytest.mark.parametrize("instructions", ["", "{}", "[]", '{"parent": 1}', "\0", "x" * 100_000])
def test_invalid_instructions_fail_without_a_message(instructions: str) -> None:
    """W3: the verdict has no other member."""
    assert run_process(instructions) == (b'{"verdict": "failed"}', b"", 0)


@pytest.mark.slow
def test_wrong_keys_fail_without_a_reason(vault: Vault) -> None:
    instructions = make_instructions(vault, b"x\n1\n", CSV)
    for wrong in (
        replace(instructions, parts=(replace(instructions.parts[0], key=generate_key()),)),
        replace(instructions, parts=(replace(instructions.parts[0], bound_to="ct_2"),)),
        replace(instructions, parts=(replace(instructions.parts[0], object_name="0" * 32),)),
        replace(instructions, parts=(replace(instructions.parts[0], size=instructions.parts[0].size + 1),)),
        replace(instructions, media_type="text/plain"),
        replace(instructions, parent=1),
    ):
        assert run_process(wrong.to_json()) == (b'{"verdict": "failed"}', b"", 0)
        assert set(vault.files()) == {instructions.parts[0].object_name}


def test_process_ends_with_its_parent_and_writes_no_core(vault: Vault) -> None:
    """W10: a killed worker leaves no child with keys, and a crash leaves no core file with rows."""
    instructions = make_instructions(vault, b"x\n1\n", CSV)
    path = next(path for path in vault.root.rglob(instructions.parts[0].object_name))
    path.unlink()
    os.mkfifo(path)  # the child blocks when it opens this, and is confined by then
    code = (
        "import json, os, subprocess, sys\n"
        "instructions = json.loads(sys.stdin.read()) | {'parent': os.getpid()}\n"
        f"child = subprocess.Popen([{str(CHILD)!r}], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)\n"
        "child.stdin.write(json.dumps(instructions).encode()); child.stdin.close()\n"
        "print(child.pid, flush=True); child.wait()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdin is not None
    assert parent.stdout is not None
    with parent.stdin as words:
        words.write(instructions.to_json().encode())
    child = Path("/proc") / parent.stdout.readline().decode().strip()
    limit = f"{instructions.memory_bytes}"
    wait_until(lambda: limit in (child / "limits").read_text())
    limits = {line[:26].strip(): line[26:].split()[:2] for line in (child / "limits").read_text().splitlines()}
    assert limits["Max core file size"] == ["0", "0"]
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not child.exists() or "State:\tZ" in (child / "status").read_text())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
