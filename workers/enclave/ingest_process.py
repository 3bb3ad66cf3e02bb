"""The process that parses one upload: instructions in, one verdict of a closed list out, nothing else.

It holds the keys of this content alone, under caps on memory and time. Whatever it meets that is not a fault of
the file ends in ``failed``, without a word about it.
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
from workers.command_line import check_ingest
from workers.enclave.faults import FileFault
from workers.enclave.grouping import Grouping
from workers.enclave.instructions import Instructions, Part
from workers.enclave.keys import fingerprint
from workers.enclave.parse import Values, parse, parse_by_unit
from workers.enclave.sandbox import confine
from workers.enclave.scratch import Scratch
from workers.enclave.sources import Caps
from workers.enclave.table_format import TableKeys
from workers.enclave.table_writer import TableWriter

HASH_BYTES = 1 << 20


def main() -> None:
    """Console script ``corevault-ingest``."""
    check_ingest(sys.argv[1:])
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    for stream in (1, 2):  # no library may speak
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    answers.write(json.dumps(_verdict(sys.stdin.read())))
    answers.flush()
    os._exit(0)  # a library's reading thread may still hold the upload, and would abort a tidy exit


def _verdict(text: str) -> dict[str, Any]:
    try:
        instructions = Instructions.from_json(text)
        confine(instructions.memory_bytes, instructions.cpu_seconds, instructions.parent)
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        return {"verdict": "ready", "fingerprint": _ingest(instructions)}
    except FileFault as fault:
        named = {"columns": fault.columns} if fault.columns else {}
        return {"verdict": "rejected", "reason": fault.reason, **named}
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
        _plaintext(incoming, instructions.parts) as upload,
        vault.create(instructions.table_object) as target,
    ):
        digest = _digest(upload)
        expected = instructions.expected_sha256
        if expected is not None and not hmac.compare_digest(expected, digest):
            raise FileFault("digest_mismatch")
        table = TableWriter(target, keys, instructions.layout)
        for batch in _batches(upload, instructions, vault):
            table.append(batch)
        table.finish()
        target.publish()
    return fingerprint(instructions.fingerprint_key, digest)


def _plaintext(incoming: ObjectStore, parts: Sequence[Part]) -> JoinedReader:
    def open_part(number: int) -> SealedReader:
        part = parts[number]
        return SealedReader(incoming.open(part.object_name), part.key, part.bound_to, cached_chunks=4)

    return JoinedReader([part.size for part in parts], open_part)


def _batches(upload: JoinedReader, told: Instructions, vault: ObjectStore) -> Iterator[Values]:
    """The table's rows in their order."""
    layout, caps = told.layout, Caps(told.rows, told.decoded_bytes)
    if layout.unit is None:
        yield from parse(upload, told.media_type, told.columns, told.slots, caps)
        return
    with Scratch(vault.scratch()) as scratch:
        grouping = Grouping(layout, scratch)
        for units, values in parse_by_unit(upload, told.media_type, told.columns, layout.unit, caps):
            grouping.add(units, values)
        yield from grouping.rows()


def _digest(upload: JoinedReader) -> bytes:
    """SHA-256 of the plaintext; reading it all first also authenticates it all, before any parser sees a byte."""
    digest = hashlib.sha256()
    while piece := upload.read(HASH_BYTES):
        digest.update(piece)
    return digest.digest()
