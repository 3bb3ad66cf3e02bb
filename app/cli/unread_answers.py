"""Protection against clients that do not read their responses.

Such a client (a slow-read attack) would occupy memory and a connection without end, so its connection is closed. The
operating system counts the bytes that a client has acknowledged. This count distinguishes a slow client from a stopped
one, also if buffers are large.
"""

import asyncio
import fcntl
import socket
import struct
import termios
from asyncio.events import TimerHandle
from typing import Any, ClassVar, Final

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from app.cli.strict_messages import StrictProtocol

LEAST_BYTES_PER_SECOND: Final = 1024
PIECE_BYTES: Final = 2**16
_ACKNOWLEDGED: Final = struct.Struct("=120xQ")  # tcpi_bytes_acked of struct tcp_info (linux/tcp.h)


class ReadProtocol(StrictProtocol):
    """Closes a connection whose client reads less than 1 KiB a second.

    The rate is measured over ``unread_seconds``. Only bytes that already wait at the start of this time count.
    """

    unread_seconds: ClassVar[float]
    _waiting, _acknowledged = 0, 0
    _check: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # same signature as the server's class
        super().connection_made(transport)
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._check is not None:
            self._check.cancel()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        super()._start_asgi_task(cycle, _split_bodies(app))

    def _check_later(self) -> None:
        self._check = self.loop.call_later(self.unread_seconds, self._check_reader)

    def _check_reader(self) -> None:
        waiting, acknowledged = _progress(self.transport)
        least = min(self._waiting, LEAST_BYTES_PER_SECOND * self.unread_seconds)
        if waiting and acknowledged - self._acknowledged < least:
            self.transport.abort()  # close() would wait for the client
            return
        self._waiting, self._acknowledged = waiting, acknowledged
        self._check_later()


def _progress(transport: asyncio.Transport) -> tuple[int, int]:
    """Return how many bytes wait for the client, and how many it has acknowledged.

    Bytes wait in the buffers of this process and of the operating system.
    """
    connection: Any = transport.get_extra_info("socket")
    queued = struct.unpack("=i", fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)))[0]
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.size)
    return transport.get_write_buffer_size() + queued, _ACKNOWLEDGED.unpack(info)[0]


def _split_bodies(app: ASGI3Application) -> ASGI3Application:
    """Wrap the application so that it sends large bodies in pieces.

    The next piece is copied to the connection's buffer after the client has read enough. So connections that send the
    same body share its bytes, and no buffer contains a whole copy.
    """

    async def send_split(scope: Any, receive: Any, send: Any) -> None:
        async def send_pieces(message: Any) -> None:
            body = message.get("body", b"")
            if len(body) <= PIECE_BYTES:
                await send(message)
                return
            for start in range(0, len(body), PIECE_BYTES):
                last = start + PIECE_BYTES >= len(body)
                more = message.get("more_body", False) or not last
                await send({**message, "body": body[start : start + PIECE_BYTES], "more_body": more})

        await app(scope, receive, send_pieces)

    return send_split
