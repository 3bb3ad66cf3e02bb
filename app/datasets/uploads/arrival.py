"""Stream a body into the vault. It is sealed while it arrives, and at most a few pieces of it are in memory.

While a thread hashes, seals and writes one piece, the event loop receives the next piece. Then it stops reading until
the thread is free (back pressure). Each piece takes a thread from the pool, so that a slow client occupies no thread.
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

Result = TypeVar("Result")


async def arrive(part: Part, body: AsyncIterator[bytes], keep: Callable[[UploadWriter], Result]) -> Result:
    """Write the body, then return the result of ``keep``. After a failure, no byte is stored.

    Raises:
        ContentTooLarge, DigestMismatch, DependencyUnavailable, InvalidRequest, StateConflict: no byte is stored.
    """
    try:
        writer = await run_in_threadpool(part.create_writer)
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
            raise InvalidRequest("The connection ended before the body was complete; no byte was stored.") from None
        raise


async def read_until_disconnect(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Read a body up to a disconnect; the bytes that arrived count as a shorter body."""
    with suppress(ClientDisconnect):
        async for data in body:
            yield data


async def _fill(part: Part, writer: UploadWriter, body: AsyncIterator[bytes]) -> None:
    """Write all of ``body``. If its source or the writer fails, the other is cancelled, and the error is raised."""
    sender, receiver = anyio.create_memory_object_stream[bytearray](0)
    with receiver:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_write_all, part, writer, receiver)
                with sender:
                    async for piece in _split(body):
                        await sender.send(piece)
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None


async def _write_all(part: Part, writer: UploadWriter, pieces: AsyncIterable[bytearray]) -> None:
    async for piece in pieces:
        await run_in_threadpool(_write, part, writer, piece)


def _write(part: Part, writer: UploadWriter, piece: bytearray) -> None:
    part.renew_lease()
    writer.write(piece)


async def _split(body: AsyncIterator[bytes]) -> AsyncIterator[bytearray]:
    """Split the body into pieces of one chunk, to change threads rarely; the last piece is shorter."""
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
