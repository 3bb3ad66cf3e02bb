"""Objects in a store: written once under a name that reveals nothing, published whole or not at all."""

import re
import secrets
from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO, Protocol, Self, runtime_checkable

from app.vault.errors import ObjectMissing

_NAME = re.compile(r"[0-9a-f]{32}")


class ObjectWriter(Protocol):
    """An object in the making. Leaving its ``with`` block without :meth:`publish` discards it."""

    name: str

    def write(self, data: bytes) -> int:
        """Append; raises DependencyUnavailable when the store is full or away."""

    def publish(self) -> str:
        """Make the object durable and visible; returns its name."""

    def discard(self) -> None:
        """Leave nothing behind; harmless after publishing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class Expecting(Protocol):
    """An open object that is quicker, and asks its server for less, where it is told what will be read of it."""

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Until told otherwise, these ranges (begin, end) are read, each as a whole."""


class ObjectStore(Protocol):
    """Where sealed uploads, encrypted tables and rendered releases lie."""

    url: str

    def create(self, name: str | None = None) -> ObjectWriter:
        """A writer for a new object (of a name from :func:`new_name`, where the caller must know it beforehand)."""

    def open(self, name: str) -> BinaryIO:
        """The published object, seekable. Raises ObjectMissing."""

    def delete(self, name: str) -> None:
        """Remove the object, published or not; harmless if there is none."""

    def scratch(self) -> BinaryIO:
        """An empty file for sealed bytes, without a name: it ends when it is closed, or with its process."""

    def leave(self, name: str, content: bytes) -> None:
        """Put up a note in place of the last one of that name: small, soon deleted, and lost with the machine."""

    def note(self, name: str) -> bytes:
        """The note of that name. Raises ObjectMissing."""

    def delete_note(self, name: str) -> None:
        """Remove the note; harmless if there is none."""

    def delete_unfinished(self, idle_seconds: float) -> None:
        """Remove what was never published and has not grown for so long (its writer has died), and notes as old."""


def new_name() -> str:
    """128 random bits."""
    return secrets.token_hex(16)


def check_name(name: str) -> str:
    """``name``, if it is one of :func:`new_name` or a digest like it; any other names nothing.

    Raises:
        ObjectMissing: otherwise.
    """
    if _NAME.fullmatch(name) is None:
        raise ObjectMissing
    return name
