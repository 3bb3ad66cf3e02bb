"""The process that parses one upload: it reads instructions and writes one verdict from a closed list.

It has only the keys of this content, and caps on memory and time. Every error that is not a fault of the file ends in
the verdict ``failed``, without details.
"""

import hashlib
import hmac
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from app.errors import DependencyUnavailable
from app.vault.joined import JoinedReader
from app.vault.reader import SealedReader
from app.vault.store import ObjectStore
from app.vault.stores import open_store
from workers.command_line import check_ingest_arguments
from workers.enclave.faults import FileFault
from workers.enclave.grouping import Grouping
from workers.enclave.instructions import Instructions, Part
from workers.enclave.keys import compute_fingerprint
from workers.enclave.parse import Values, parse, parse_by_unit
from workers.enclave.registers import Admission
from workers.enclave.sandbox import confine
from workers.enclave.scratch import Scratch
from workers.enclave.sources import Caps
from workers.enclave.table_format import TableKeys
from workers.enclave.table_writer import TableWriter

HASH_BYTES = 1 << 20


def main() -> None:
    """Console script ``corevault-ingest``."""
    check_ingest_arguments(sys.argv[1:])
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    for stream in (1, 2):  # no library may write anything
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    answers.write(json.dumps(_reach_verdict(sys.stdin.read())))
    answers.flush()
    os._exit(0)  # a library's reading thread may still use the upload, and would abort a normal exit


def _reach_verdict(text: str) -> dict[str, Any]:
    try:
        instructions = Instructions.from_json(text)
        confine(instructions.memory_bytes, instructions.cpu_seconds, instructions.parent)
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        return {"verdict": "ready", "fingerprint": _ingest(instructions)}
    except FileFault as fault:
        names = {"columns": fault.columns} if fault.columns else {}
        return {"verdict": "rejected", "reason": fault.reason, **names}
    except MemoryError:
        return {"verdict": "rejected", "reason": "too_large"}
    except DependencyUnavailable:
        return {"verdict": "unavailable"}
    except BaseException:  # noqa: BLE001 - no exception may cross the wall
        return {"verdict": "failed"}


def _ingest(instructions: Instructions) -> str:
    vault, incoming = open_store(instructions.vault_url), open_store(instructions.incoming_url)
    keys = TableKeys(instructions.content_key, instructions.dataset_id, instructions.version)
    with (
        _open_plaintext(incoming, instructions.parts) as upload,
        vault.create(instructions.table_object) as target,
    ):
        digest = _compute_digest(upload)
        expected = instructions.expected_sha256
        if expected is not None and not hmac.compare_digest(expected, digest):
            raise FileFault("digest_mismatch")
        table = TableWriter(target, keys, instructions.layout)
        for batch in _read_batches(upload, instructions, vault):
            table.append(batch)
        table.finish()
        target.publish()
    return compute_fingerprint(instructions.fingerprint_key, digest)


def _open_plaintext(incoming: ObjectStore, parts: Sequence[Part]) -> JoinedReader:
    def open_part(number: int) -> SealedReader:
        part = parts[number]
        return SealedReader(incoming.open(part.object_name), part.key, part.bound_to, cached_chunks=4)

    return JoinedReader([part.size for part in parts], open_part)


def _read_batches(upload: JoinedReader, instructions: Instructions, vault: ObjectStore) -> Iterator[Values]:
    """Read the table's rows in their order."""
    layout, caps, order = instructions.layout, Caps(instructions.rows, instructions.decoded_bytes), instructions.series
    media_type, columns = instructions.media_type, instructions.columns
    if layout.unit is None:
        yield from parse(upload, media_type, columns, instructions.slots, caps)
        return
    with Scratch(vault.scratch()) as scratch:
        admission = None if order is None else Admission(order, vault, layout.slots)
        grouping = Grouping(layout, scratch, admission=admission)
        for units, values in parse_by_unit(upload, media_type, columns, layout.unit, caps):
            grouping.add(units, values)
        yield from grouping.rows()
    if admission is not None:
        admission.write()


def _compute_digest(upload: JoinedReader) -> bytes:
    """Compute SHA-256 of the plaintext.

    Reading the whole upload first also authenticates it before a parser gets a byte.
    """
    digest = hashlib.sha256()
    while piece := upload.read(HASH_BYTES):
        digest.update(piece)
    return digest.digest()
