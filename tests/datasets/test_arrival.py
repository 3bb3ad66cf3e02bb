"""Transfer of a body from the event loop to the sealing thread: concurrent, bounded and in order."""

import threading
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import pytest
from starlette.requests import ClientDisconnect

from app.datasets.uploads import arrival
from app.datasets.uploads.parts import Part
from app.errors import DependencyUnavailable, InvalidRequest
from app.vault.envelope import CHUNK_BYTES

MESSAGE_BYTES = 65_536
PATIENCE_SECONDS = 20


@dataclass
class Intake:
    """A fake part and writer in one object: records calls, and runs ``work`` on each piece."""

    work: Callable[[bytes], None] = lambda _: None
    done: list[str] = field(default_factory=list)
    taken: bytearray = field(default_factory=bytearray)

    def create_writer(self) -> "Intake":
        return self

    def renew_lease(self) -> None: ...

    def write(self, piece: bytes) -> None:
        self.work(piece)
        self.taken += piece
        self.done.append("written")

    def abort(self) -> None:
        self.done.append("aborted")

    def give_up(self) -> None:
        self.done.append("given up")


def run_arrival(intake: Intake, body: AsyncIterator[bytes]) -> Any:
    """Run ``arrive`` with this body; a wait without end is an error."""

    async def run() -> Any:
        with anyio.fail_after(PATIENCE_SECONDS):
            return await arrival.arrive(cast(Part, intake), body, lambda _: "kept")

    return anyio.run(run)


async def messages(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), MESSAGE_BYTES):
        yield data[start : start + MESSAGE_BYTES]


def test_a_body_is_written_in_order() -> None:
    data, intake = bytes(range(256)) * 20_000, Intake()
    assert run_arrival(intake, messages(data)) == "kept"
    assert intake.taken == data
    assert set(intake.done[:-1]) == {"written"}


def test_the_next_piece_is_received_while_one_is_sealed() -> None:
    asked_again = threading.Event()

    def seal(_: bytes) -> None:
        assert asked_again.wait(PATIENCE_SECONDS)

    async def body() -> AsyncIterator[bytes]:
        yield bytes(CHUNK_BYTES)
        asked_again.set()
        yield bytes(CHUNK_BYTES)

    assert run_arrival(Intake(seal), body()) == "kept"


def test_a_slow_store_slows_the_client_down() -> None:
    """One piece is sealed and one waits. Memory does not grow with the body."""
    sent, ahead = 0, []
    intake = Intake(lambda _: time.sleep(0.002))

    async def body() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(30 * CHUNK_BYTES // MESSAGE_BYTES):
            yield bytes(MESSAGE_BYTES)
            sent += MESSAGE_BYTES
            ahead.append(sent - len(intake.taken))

    assert run_arrival(intake, body()) == "kept"
    assert max(ahead) <= 2 * CHUNK_BYTES + MESSAGE_BYTES


def test_a_store_failure_ends_the_wait_for_a_body() -> None:
    """W10: the client gets the error at once, and not after its next piece."""

    def full(_: bytes) -> None:
        raise DependencyUnavailable

    async def body() -> AsyncIterator[bytes]:
        yield bytes(CHUNK_BYTES)
        await anyio.sleep_forever()

    intake = Intake(full)
    with pytest.raises(DependencyUnavailable):
        run_arrival(intake, body())
    assert intake.done == ["aborted", "given up"]


def test_the_part_is_not_given_up_while_a_piece_is_sealed() -> None:
    """W10: bytes that are written after the cleanup would stay in the store."""
    sealing, left = threading.Event(), threading.Event()

    def seal(_: bytes) -> None:
        sealing.set()
        assert left.wait(PATIENCE_SECONDS)
        time.sleep(0.05)

    async def body() -> AsyncIterator[bytes]:
        yield bytes(CHUNK_BYTES)
        await anyio.to_thread.run_sync(sealing.wait)
        left.set()
        raise ClientDisconnect

    intake = Intake(seal)
    with pytest.raises(InvalidRequest):
        run_arrival(intake, body())
    assert intake.done == ["written", "aborted", "given up"]


def test_pieces_except_the_last_are_chunks() -> None:
    async def sizes() -> list[int]:
        return [len(piece) async for piece in arrival._split(messages(bytes(5 * CHUNK_BYTES // 2 + 1)))]

    assert anyio.run(sizes) == [CHUNK_BYTES, CHUNK_BYTES, CHUNK_BYTES // 2 + 1]
