"""Object stores. An object is written once under a random name, and published as a whole or not at all."""

import re
import secrets
from collections.abc import Sequence
from types import TracebackType
from typing import BinaryIO, Protocol, Self, runtime_checkable

from app.vault.errors import ObjectMissing

_NAME = re.compile(r"[0-9a-f]{32}")


class ObjectWriter(Protocol):
    """Writes a new object. Leaving its ``with`` block without :meth:`publish` discards the object."""

    name: str

    def write(self, data: bytes) -> int:
        """Append bytes; raises DependencyUnavailable if the store is full or does not answer."""

    def publish(self) -> str:
        """Make the object durable and visible; returns its name."""

    def discard(self) -> None:
        """Remove all that was written; harmless after publishing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class Expecting(Protocol):
    """An open object that reads ranges faster if they are announced."""

    def expect(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Announce the ranges (begin, end) of the next reads; each is read as a whole."""


class ObjectStore(Protocol):
    """Storage of sealed uploads, encrypted tables and rendered releases."""

    url: str

    def create(self, name: str | None = None) -> ObjectWriter:
        """Create a writer for a new object. A caller that needs the name beforehand takes it from :func:`draw_name`."""

    def open(self, name: str) -> BinaryIO:
        """Open a published object as a seekable file; raises ObjectMissing."""

    def delete(self, name: str) -> None:
        """Remove the object, published or not; harmless if it does not exist."""

    def scratch(self) -> BinaryIO:
        """Create an unnamed file for sealed bytes; closing it or ending the process removes it."""

    def leave(self, name: str, content: bytes) -> None:
        """Store a note, which replaces an older note of the same name.

        A note is small, is deleted soon, and need not survive a crash of the machine.
        """

    def note(self, name: str) -> bytes:
        """Read a note; raises ObjectMissing."""

    def delete_note(self, name: str) -> None:
        """Remove a note; harmless if it does not exist."""

    def delete_unfinished(self, idle_seconds: float) -> None:
        """Remove unpublished objects and notes that have not changed for ``idle_seconds``.

        The writer of such an object has died.
        """


def draw_name() -> str:
    """Draw a name of 128 random bits."""
    return secrets.token_hex(16)


def check_name(name: str) -> str:
    """Return ``name`` if it has the form of :func:`draw_name`; digests of 128 bits have it too.

    Raises:
        ObjectMissing: for any other name.
    """
    if _NAME.fullmatch(name) is None:
        raise ObjectMissing
    return name
