"""Registers of a series: the keyed pseudonyms of people whose rows a table keeps.

A person belongs to the first block of the series that received that person's rows. Rows of people in the registers of
other blocks become null rows, in their places. Everything that leaves this module has a size and an outcome that follow
from the upload and the declaration alone, never from earlier blocks:

- A register is padded with random pseudonyms to the declared slots.
- People of other blocks count as units of this upload, so they decide nothing about ``too_many_units``.
- Masks set rows to zero. No branch depends on whether a person returned.

A pseudonym has 128 bits: SipHash-2-4 under two keys. Among n people, one shares a pseudonym with another with a
probability of at most ``n 2**-128``.
"""

import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.vault.envelope import (
    CHUNK_BYTES,
    KEY_BYTES,
    TAG_BYTES,
    derive_key,
    open_chunk,
    seal_chunk,
)
from app.vault.store import ObjectStore
from workers.enclave.faults import FileFault
from workers.enclave.pseudonyms import compute_pseudonyms

WIDTH: Final = 16
Names = NDArray[np.bytes_]
"""Pseudonyms ``(n,)`` of 16 bytes each."""
_TYPE: Final = np.dtype(f"S{WIDTH}")
_WAITING: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class StoredRegister:
    """A stored register, with the declared slots to which it is padded."""

    object_name: str
    slots: int


@dataclass(frozen=True, slots=True)
class SeriesOrder:
    """The enclave's part of a series, for one content.

    Attributes:
        key: of the owner's series, 32 bytes.
        register_object: the name of the register to write.
        earlier: the registers of earlier contents of other blocks.
    """

    key: bytes = field(repr=False)
    register_object: str
    earlier: tuple[StoredRegister, ...]


class Admission:
    """Decides for each person of one upload whether the rows stay.

    Call :meth:`note` for all rows, then :meth:`close`, then :meth:`admit` for each person once, then :meth:`write`.

    Args:
        order: of this content.
        vault: holds the registers.
        slots: of this content.
    """

    def __init__(self, order: SeriesOrder, vault: ObjectStore, slots: int) -> None:
        self._order, self._vault, self._slots = order, vault, slots
        self._keys = derive_key(order.key, b"pseudonyms")
        self._seen, self._waiting = np.zeros(0, _TYPE), list[Names]()
        self._is_returned = np.zeros(0, dtype=bool)
        self._kept = list[Names]()

    def name(self, units: NDArray[np.float64]) -> Names:
        """Compute the pseudonyms of units ``(n,)``."""
        half = KEY_BYTES // 2
        words = [compute_pseudonyms(key, units) for key in (self._keys[:half], self._keys[half:])]
        return np.ascontiguousarray(np.stack(words, axis=1)).view(_TYPE).reshape(-1)

    def note(self, names: Names) -> None:
        """Remember the people of some rows.

        Raises:
            FileFault: too_many_units.
        """
        self._waiting.append(np.unique(names))
        if sum(map(len, self._waiting)) >= _WAITING:
            self._merge()

    def close(self) -> None:
        """Find the people whom earlier contents of other blocks have registered.

        Raises:
            FileFault: too_many_units.
            ObjectMissing, VaultError: a register is lost or was altered.
        """
        self._merge()
        self._is_returned = np.zeros(len(self._seen), dtype=bool)
        for register in self._order.earlier:
            self._is_returned |= _find(self._seen, read_register(self._vault, self._order.key, register))

    def admit(self, names: Names) -> NDArray[np.bool_]:
        """Return whether the rows of distinct people stay; such people are registered."""
        stays = ~self._is_returned[np.searchsorted(self._seen, names)]
        self._kept.append(names[stays])
        return np.asarray(stays)

    def write(self) -> None:
        """Publish the register of this content."""
        kept = np.concatenate([np.zeros(0, _TYPE), *self._kept])
        spare = np.frombuffer(secrets.token_bytes(WIDTH * (self._slots - len(kept))), dtype=_TYPE)
        write_register(self._vault, self._order.key, self._order.register_object, np.concatenate([kept, spare]))

    def _merge(self) -> None:
        self._seen = np.unique(np.concatenate([self._seen, *self._waiting]))
        self._waiting = []
        if len(self._seen) > self._slots:
            raise FileFault("too_many_units")


def _find(names: Names, register: Names) -> NDArray[np.bool_]:
    """Return whether each of ``names`` is in a sorted register, which is not empty."""
    places = np.minimum(np.searchsorted(register, names), len(register) - 1)
    return np.asarray(register[places] == names)


def write_register(vault: ObjectStore, series_key: bytes, object_name: str, names: Names) -> None:
    """Write ``names`` in sorted order, encrypted under a key for this object only.

    Raises:
        DependencyUnavailable: the store is full or does not answer.
    """
    data, key = np.sort(names).tobytes(), _derive_register_key(series_key, object_name)
    with vault.create(object_name) as target:
        for index, start, last in _list_chunks(len(data)):
            target.write(seal_chunk(key, object_name, index, data[start : start + CHUNK_BYTES], last=last))
        target.publish()


def read_register(vault: ObjectStore, series_key: bytes, register: StoredRegister) -> Names:
    """Read a register, sorted.

    Raises:
        ObjectMissing: there is no such object.
        VaultError: it was altered, or has another number of pseudonyms.
    """
    key, pieces = _derive_register_key(series_key, register.object_name), list[bytes]()
    with vault.open(register.object_name) as file:
        for index, start, last in _list_chunks(WIDTH * register.slots):
            size = min(CHUNK_BYTES, WIDTH * register.slots - start) + TAG_BYTES
            pieces.append(open_chunk(key, register.object_name, index, file.read(size), last=last))
    return np.frombuffer(b"".join(pieces), dtype=_TYPE)


def _list_chunks(size: int) -> Iterator[tuple[int, int, bool]]:
    """Yield index, place and whether it is the last, for each chunk."""
    starts = range(0, size, CHUNK_BYTES)
    return ((index, start, index == len(starts) - 1) for index, start in enumerate(starts))


def _derive_register_key(series_key: bytes, object_name: str) -> bytes:
    return derive_key(series_key, b"register|" + object_name.encode())


def read_order(members: dict[str, Any], key: bytes) -> SeriesOrder:
    """Read an order from the JSON object of its members, and its key."""
    earlier: Sequence[dict[str, Any]] = members["earlier"]
    return SeriesOrder(key, members["register_object"], tuple(StoredRegister(**each) for each in earlier))
