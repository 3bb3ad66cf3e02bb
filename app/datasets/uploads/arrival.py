"""Streaming a body into the vault: sealed while it arrives, a few pieces in memory.

While one piece is hashed, sealed and written on a thread, the next is received; the one after that waits until the
thread is free, and with it the client. A thread is taken for each piece anew, so that a slow client holds none.
"""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import suppress
from typing import TypeVar

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from app.datasets.uploads.parts import Part
from app.errors import InvalidRequest
from app.vault.envelope import CHUNK_BYTES
from app.vault.writer import UploadWriter

Kept = TypeVar("Kept")


async def arrive(part: Part, body: AsyncIterator[bytes], keep: Callable[[UploadWriter], Kept]) -> Kept:
    """What ``keep`` makes of the part once all of ``body`` is in its writer; nothing of it stays if anything fails.

    Raises:
        ContentTooLarge, DigestMismatch, DependencyUnavailable, InvalidRequest, StateConflict: nothing is kept.
    """
    try:
        writer = await run_in_threadpool(part.writer)
        try:
            await _fill(part, writer, body)
            return await run_in_threadpool(keep, writer)
        finally:
            with anyio.CancelScope(shield=True):
                await run_in_threadpool(writer.abort)
    except BaseException as error:
        with anyio.CancelScope(shield=True):
            await run_in_threadpool(part.give_up)
        if isinstance(error, ClientDisconnect):
            raise InvalidRequest("The connection ended before the body did; nothing of it was kept.") from None
        raise


async def read_until_disconnect(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Read a body that may break off: its first bytes are as good as a shorter body."""
    with suppress(ClientDisconnect):
        async for data in body:
            yield data


async def _fill(part: Part, writer: UploadWriter, body: AsyncIterator[bytes]) -> None:
    """Returns once all of ``body`` is in ``writer``; what fails first ends the other side too, and is raised."""
    handed, taken = anyio.create_memory_object_stream[bytearray](0)
    with taken:
        try:
            async with anyio.create_task_group() as beside:
                beside.start_soon(_take_all, part, writer, taken)
                with handed:
                    async for piece in _pieces(body):
                        await handed.send(piece)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None


async def _take_all(part: Part, writer: UploadWriter, pieces: AsyncIterable[bytearray]) -> None:
    async for piece in pieces:
        await run_in_threadpool(_take, part, writer, piece)


def _take(part: Part, writer: UploadWriter, piece: bytearray) -> None:
    part.beat()
    writer.write(piece)


async def _pieces(body: AsyncIterator[bytes]) -> AsyncIterator[bytearray]:
    """The body in pieces of a chunk, which is worth a change of thread; the last one is what is left."""
    gathered = bytearray()
    async for data in body:
        rest = memoryview(data)
        while rest:
            room = CHUNK_BYTES - len(gathered)
            gathered += rest[:room]
            rest = rest[room:]
            if len(gathered) == CHUNK_BYTES:
                yield gathered
                gathered = bytearray()
    if gathered:
        yield gathered
