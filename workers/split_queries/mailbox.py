"""The mailbox of one attempt: the coordinator puts a task into it, and helpers put partial sums.

Both are sealed notes in the store, outside of the broker. The task is sealed under a key that only workers can derive,
and contains the key of its partial sums. Once the task is destroyed, no remaining sum can be opened. A task is bound to
job, attempt and query, and a sum also to its part, so that none can replace another.
"""

import hashlib
import io
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import DependencyUnavailable
from app.inference.core.query import Integers, Query
from app.inference.private_zone.partition import Slots
from app.inference.private_zone.queries.arrays import from_arrays, to_arrays
from app.vault.envelope import generate_key, open_message, seal_message
from app.vault.errors import VaultError
from app.vault.store import ObjectStore
from workers.enclave.keys import OpeningKey

MOST_PARTS = 64
_HEADER = struct.Struct("<4sQI")  # magic, query, parts: enough to name all notes of the attempt and delete them
_MAGIC = b"CVT1"
_FAULT = b"fault"


class PartFaulty(Exception):
    """A helper's computation on the rows of a part failed."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One query in parts: part ``i`` has the units ``slots[places[i]:places[i + 1]]``."""

    query: Query
    slots: Slots
    places: Sequence[int]
    key: bytes = field(default_factory=generate_key, repr=False)

    @property
    def parts(self) -> int:
        return len(self.places) - 1

    def units(self, part: int) -> Slots:
        return self.slots[self.places[part] : self.places[part + 1]]


class Mailbox:
    """The current task of one attempt of a job, and its helpers' partial sums.

    Args:
        store: keeps the notes.
        opening_key: the worker's opening key.
        job_id: with ``token``, identifies the attempt.
        token: the attempt's fencing token.
    """

    def __init__(self, store: ObjectStore, opening_key: OpeningKey, job_id: str, token: int) -> None:
        self._store = store
        self._key = opening_key.attempt_key(job_id, token)
        self._attempt = f"{job_id}|{token}"

    def put_task(self, query: int, task: Task) -> bool:
        """Replace the task by that of ``query``; False if the store is away."""
        sealed = seal_message(_pack(task), self._key, self._context("task", query, task.parts))
        return self._put(_task_name(self._attempt), _HEADER.pack(_MAGIC, query, task.parts) + sealed)

    def read_task(self, query: int) -> Task | None:
        """Read the task of ``query``; None unless it is the current one."""
        data = self._read(_task_name(self._attempt))
        header = _parse_header(data)
        if data is None or header is None or header[0] != query:
            return None
        with suppress(VaultError):
            return _unpack(open_message(data[_HEADER.size :], self._key, self._context("task", *header)))
        return None

    def put_part(self, query: int, task: Task, part: int, sums: Integers | None) -> None:
        """Put the sums of ``part`` for the coordinator; None reports a faulty part."""
        content = _FAULT if sums is None else sums.astype("<i8").tobytes()
        self._put(self._name(query, part), seal_message(content, task.key, self._context("part", query, part)))

    def read_part(self, query: int, task: Task, part: int) -> Integers | None:
        """Read the sums of ``part`` of ``task``; None if they are absent or do not open.

        Raises:
            PartFaulty: the helper's computation on rows failed.
        """
        data = self._read(self._name(query, part))
        if data is None:
            return None
        try:
            content = open_message(data, task.key, self._context("part", query, part))
        except VaultError:
            return None
        if content == _FAULT:
            raise PartFaulty
        return np.frombuffer(content, dtype="<i8").astype(np.int64)

    def delete_part(self, query: int, part: int) -> None:
        """Destroy the sums of a part that were put after the task had ended."""
        self._store.delete_note(self._name(query, part))

    def _context(self, purpose: str, query: int, number: int) -> bytes:
        return f"{purpose}|{self._attempt}|{query}|{number}".encode()

    def _name(self, query: int, part: int) -> str:
        return _part_name(self._attempt, query, part)

    def _put(self, name: str, content: bytes) -> bool:
        with suppress(DependencyUnavailable):
            self._store.leave(name, content)
            return True
        return False

    def _read(self, name: str) -> bytes | None:
        return _read(self._store, name)


def clear_mailbox(store: ObjectStore, job_id: str, token: int) -> None:
    """Destroy the current task of an attempt and its partial sums; harmless if there are none.

    Sums are destroyed before the task, because the task is needed to name them. They are destroyed again after it, for
    sums that arrived in between. A helper that puts one later finds no task, and deletes its sums.
    """
    attempt = f"{job_id}|{token}"
    header = _parse_header(_read(store, _task_name(attempt)))
    names = [] if header is None else [_part_name(attempt, header[0], part) for part in range(header[1])]
    for name in (*names, _task_name(attempt), *names):
        store.delete_note(name)


def _task_name(attempt: str) -> str:
    return hashlib.sha256(f"task|{attempt}".encode()).hexdigest()[:32]


def _part_name(attempt: str, query: int, part: int) -> str:
    return hashlib.sha256(f"part|{attempt}|{query}|{part}".encode()).hexdigest()[:32]


def _read(store: ObjectStore, name: str) -> bytes | None:
    with suppress(VaultError, DependencyUnavailable):
        return store.note(name)
    return None


def _parse_header(data: bytes | None) -> tuple[int, int] | None:
    """Parse a task's header into the query and the number of parts; None for an invalid header."""
    if data is None or len(data) < _HEADER.size:
        return None
    magic, query, parts = _HEADER.unpack_from(data)
    return (query, parts) if magic == _MAGIC and parts <= MOST_PARTS else None


def _pack(task: Task) -> bytes:
    arrays: dict[str, NDArray[Any]] = {
        "places": np.asarray(task.places, dtype=np.int64),
        "key": np.frombuffer(task.key, dtype=np.uint8),
        **{f"question.{name}": array for name, array in to_arrays(task.query).items()},
    }
    if not isinstance(task.slots, range):
        arrays["slots"] = task.slots
    sink = io.BytesIO()
    np.savez(sink, allow_pickle=False, **arrays)
    return sink.getvalue()


def _unpack(content: bytes) -> Task:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        arrays = dict(file)
    places = arrays.pop("places").tolist()
    key = arrays.pop("key").tobytes()
    slots = arrays.pop("slots") if "slots" in arrays else range(places[-1])
    named = {name.removeprefix("question."): array for name, array in arrays.items()}
    return Task(from_arrays(named), slots, places, key)
