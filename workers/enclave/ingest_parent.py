"""Turns a sealed upload into an encrypted table, with a child process."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from app.inference.core.facts import DeclaredFacts
from app.vault.envelope import SealedPart, generate_key, make_declared_context, wrap_key
from app.vault.reader import compute_plaintext_size, read_box
from app.vault.store import ObjectStore, draw_name
from app.vault.wrapped_keys import WrappedKeys
from workers.enclave.faults import MOST_NAMES, NAMING, REASONS, Reason, make_printable
from workers.enclave.ingest_limits import Limits
from workers.enclave.instructions import Instructions, Part
from workers.enclave.keys import OpeningKey
from workers.enclave.registers import SeriesOrder, StoredRegister

ANSWER_BYTES = 32 << 10  # read after the child has ended, so it cannot fill the worker's memory; fits a pipe
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),  # the process keeps the memory that it frees,
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),  # instead of zeroing new memory for every block
}


@dataclass(frozen=True, slots=True)
class Upload:
    """A received content and its sealed keys."""

    content_id: str
    parts: Sequence[SealedPart]
    media_type: str
    owner_id: str
    dataset_id: str
    version: int
    dataset_box: bytes  # the dataset's key in its box
    facts_digest: str  # of the declaration
    digest_box: bytes | None = None  # the announced digest of the whole, in its box
    public: bool = False  # whether the dataset is
    series: str | None = None  # to which the dataset belongs
    earlier: tuple[StoredRegister, ...] = ()  # registers of earlier contents of other blocks


@dataclass(frozen=True, slots=True)
class Ingested:
    """The table is durable; ``wrapped_key`` is its key, wrapped with the dataset's key.

    In a series, the register is durable too.
    """

    table_object: str
    wrapped_key: bytes
    fingerprint: str
    register_object: str | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """The file is at fault; some reasons name columns of its header or of the declaration."""

    reason: Reason
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The file may not be at fault; ``transient`` if the store was full or away."""

    transient: bool


Outcome = Ingested | Rejected | Failed


def ingest(
    incoming: ObjectStore,
    vault: ObjectStore,
    opening_key: OpeningKey,
    upload: Upload,
    facts: DeclaredFacts,
    *,
    keys: WrappedKeys,
    limits: Limits,
) -> Outcome:
    """Parse ``upload`` into a new table of the declared slots; blocks until the child has ended.

    Only the outcome :class:`Ingested` leaves new objects in ``vault``. The upload in ``incoming`` is never changed.

    Raises:
        VaultError: the upload's or the dataset's key does not open.
        DependencyUnavailable: the store is away.
    """
    box = upload.digest_box
    dataset_key = opening_key.dataset_key(upload.dataset_box, upload.dataset_id, public=upload.public)
    parts = tuple(_open(incoming, keys, opening_key, part) for part in upload.parts)
    cpu_seconds = limits.cpu_seconds(
        sum(part.size for part in parts), facts, sum(each.slots for each in upload.earlier)
    )
    instructions = Instructions(
        parent=os.getpid(),
        incoming_url=incoming.url,
        vault_url=vault.url,
        parts=parts,
        media_type=upload.media_type,
        table_object=draw_name(),
        dataset_id=upload.dataset_id,
        version=upload.version,
        columns=facts.columns,
        slots=facts.slots,
        unit=facts.unit,
        memory_bytes=limits.memory_bytes,
        cpu_seconds=cpu_seconds,
        rows=limits.rows,
        decoded_bytes=limits.decoded_bytes,
        expected_sha256=None if box is None else opening_key.digest(box, upload.content_id),
        content_key=generate_key(),
        fingerprint_key=opening_key.fingerprint_key(upload.owner_id),
        series=_make_order(opening_key, upload),
    )
    context = make_declared_context(upload.dataset_id, upload.version, upload.facts_digest)
    wrapped = wrap_key(instructions.content_key, dataset_key, context)
    return _carry_out(vault, instructions, wrapped, limits.timeout_seconds(cpu_seconds))


def _make_order(opening_key: OpeningKey, upload: Upload) -> SeriesOrder | None:
    if upload.series is None:
        return None
    return SeriesOrder(opening_key.series_key(upload.owner_id, upload.series), draw_name(), upload.earlier)


def _open(incoming: ObjectStore, keys: WrappedKeys, opening_key: OpeningKey, part: SealedPart) -> Part:
    """Open a part for the child, which does not get the opening key."""
    with incoming.open(part.object_name) as sealed:
        key = opening_key.upload_key(read_box(sealed) or keys.part_box(part.object_name), part.bound_to)
        return Part(part.object_name, part.bound_to, compute_plaintext_size(sealed.seek(0, os.SEEK_END)), key)


def _carry_out(vault: ObjectStore, instructions: Instructions, wrapped_key: bytes, timeout_seconds: float) -> Outcome:
    is_ready, order = False, instructions.series
    register = None if order is None else order.register_object
    try:
        verdict = _run_child(instructions, timeout_seconds)
        if not isinstance(verdict, str):
            return verdict
        is_ready = True
        return Ingested(instructions.table_object, wrapped_key, verdict, register)
    finally:
        for name in () if is_ready else filter(None, (instructions.table_object, register)):
            vault.delete(name)


def _run_child(instructions: Instructions, timeout_seconds: float) -> str | Rejected | Failed:
    """Return the fingerprint, or the reason why there is no table."""
    with os.fdopen(os.memfd_create("instructions"), "w+b") as file:
        file.write(instructions.to_json().encode())
        file.seek(0)
        child = subprocess.Popen(
            [Path(sys.executable).with_name("corevault-ingest")],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT | _credentials(),
            cwd="/",
        )
    with child, cast(BinaryIO, child.stdout) as answers:
        try:
            child.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return Failed(transient=False)
        finally:
            child.kill()
        answer = answers.read(ANSWER_BYTES)
    if child.returncode in {-signal.SIGXCPU, -signal.SIGABRT}:  # out of time; out of memory inside a library
        return Rejected("too_large")
    declared = {column.name for column in instructions.columns}
    return _check_answer(answer, declared) if child.returncode == 0 else Failed(transient=False)


def _credentials() -> dict[str, str]:
    """The environment variables that the AWS libraries read, for contents on an S3 server."""
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_") or name == "HOME"}


def _check_answer(answer: bytes, declared: Collection[str]) -> str | Rejected | Failed:
    """Return the child's verdict if it is in the closed list.

    The child has parsed hostile bytes, so it is not trusted.
    """
    try:
        verdict: dict[str, Any] = dict(json.loads(answer))
    except (ValueError, TypeError):
        return Failed(transient=False)
    match verdict:
        case {"verdict": "ready", "fingerprint": str(fingerprint)} if _FINGERPRINT.fullmatch(fingerprint):
            return fingerprint
        case {"verdict": "rejected", "reason": str(reason), **rest} if reason in REASONS:
            names = rest.get("columns", [])
            return (
                Rejected(cast(Reason, reason), tuple(names))
                if _are_names(reason, names, declared)
                else Failed(transient=False)
            )
        case _:
            return Failed(transient=verdict == {"verdict": "unavailable"})


def _are_names(reason: str, names: object, declared: Collection[str]) -> bool:
    """Whether a fault for ``reason`` may name these columns.

    They must be few, short and printable. They must be declared, except for ``unknown_column``.
    """
    if not isinstance(names, list) or len(names) > (MOST_NAMES if reason in NAMING else 0):
        return False
    return all(
        isinstance(name, str) and name == make_printable(name) and (name in declared) is (reason != "unknown_column")
        for name in names
    )
