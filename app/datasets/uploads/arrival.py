"""Streaming a body into the vault: sealed while it arrives, a few pieces in memory; reading waits for sealing."""

from collections.abc import AsyncIterator, Callable
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
            async for piece in _pieces(body):
                await run_in_threadpool(_take, part, writer, piece)
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


def _take(part: Part, writer: UploadWriter, piece: bytes) -> None:
    part.beat()
    writer.write(piece)


async def _pieces(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The body in pieces worth a change of thread."""
    gathered = bytearray()
    async for data in body:
        gathered += data
        if len(gathered) >= CHUNK_BYTES:
            yield bytes(gathered)
            gathered.clear()
    yield bytes(gathered)
