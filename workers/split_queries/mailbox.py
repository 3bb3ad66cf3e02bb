"""What workers tell each other while they answer one query together: a task, and partial sums in return.

Both lie in the store as notes, sealed, outside of the broker. The task of a query lies under a key that only workers
derive, and brings the key of its partial sums with it: once it is destroyed, they open for nobody, whatever may be left
of them. Each is bound to job, attempt, query and (a sum) its part, so that none can stand in for another.
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
from app.vault.envelope import new_key, open_message, seal_message
from app.vault.errors import VaultError
from app.vault.store import ObjectStore
from workers.enclave.keys import OpeningKey

MOST_PARTS = 64
_HEADER = struct.Struct("<4sQI")  # magic, query, parts: all that whoever tidies up has to know
_MAGIC = b"CVT1"
_FAULT = b"fault"


class PartFaulty(Exception):
    """A part failed among its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """One query: part ``i`` takes the units ``slots[places[i]:places[i + 1]]``."""

    query: Query
    slots: Slots
    places: Sequence[int]
    key: bytes = field(default_factory=new_key, repr=False)

    @property
    def parts(self) -> int:
        return len(self.places) - 1

    def units(self, part: int) -> Slots:
        return self.slots[self.places[part] : self.places[part + 1]]


class Exchange:
    """The place where one attempt of a job keeps its current task, and its helpers their partial sums.

    Args:
        store: where objects lie.
        opening_key: the worker's.
        job_id: with ``token`` the attempt.
        token: its fencing token.
    """

    def __init__(self, store: ObjectStore, opening_key: OpeningKey, job_id: str, token: int) -> None:
        self._store = store
        self._key = opening_key.attempt_key(job_id, token)
        self._attempt = f"{job_id}|{token}"

    def tell(self, query: int, task: Task) -> bool:
        """Put up the task of ``query`` in place of the last one; False if the store does not take it."""
        sealed = seal_message(_pack(task), self._key, self._context("task", query, task.parts))
        return self._put(_task_name(self._attempt), _HEADER.pack(_MAGIC, query, task.parts) + sealed)

    def read_task(self, query: int) -> Task | None:
        """The task of ``query``, if it is the current one."""
        data = self._read(_task_name(self._attempt))
        header = _parse(data)
        if data is None or header is None or header[0] != query:
            return None
        with suppress(VaultError):
            return _unpack(open_message(data[_HEADER.size :], self._key, self._context("task", *header)))
        return None

    def hand_in(self, query: int, task: Task, part: int, sums: Integers | None) -> None:
        """Keep the sums of ``part`` for whoever asked, or (None) that it was faulty."""
        content = _FAULT if sums is None else sums.astype("<i8").tobytes()
        self._put(self._name(query, part), seal_message(content, task.key, self._context("part", query, part)))

    def read_part(self, query: int, task: Task, part: int) -> Integers | None:
        """The sums of ``part`` of this very task, None if there are none that open.

        Raises:
            PartFaulty: whoever computed them met a fault among the rows.
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

    def withdraw(self, query: int, part: int) -> None:
        """Destroy what was handed in for a task that has ended meanwhile."""
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


def clear(store: ObjectStore, job_id: str, token: int) -> None:
    """Destroy the current task of an attempt and all partial sums for it; harmless if there are none.

    Sums are destroyed before the task, which names them, and after it: whoever hands one in too late finds no task.
    """
    attempt = f"{job_id}|{token}"
    header = _parse(_read(store, _task_name(attempt)))
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


def _parse(data: bytes | None) -> tuple[int, int] | None:
    """Query and parts of a task's header."""
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
