"""ASGI middleware that serves points, beliefs and groups of cached public releases.

It needs neither the database nor a route. It answers plain reads of releases that are in the cache. The application
answers all other requests: reads with a credential, refusals, faults of the store, and releases that are not cached.
The application's route puts releases into the cache.
"""

import re
from collections.abc import Callable
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Receive, Scope, Send

from app.context import get_current
from app.errors import CorevaultError
from app.releases.http.cache import PublicReleases
from app.releases.http.formats import Part
from app.releases.http.representation import ReadRequest, Reply
from app.vault.errors import ObjectMissing

ROUTES: Final = {part: f"/v1/releases/{{release_id}}/{part}" for part in Part}
_PATH = re.compile(rf"/v1/releases/(rel_[0-9a-z]{{26}})/({'|'.join(Part)})", re.ASCII)
_FORMAT = re.compile(rb"(?:format=(json|csv|parquet|npz))?")
_READ_HEADERS: Final = {
    b"accept": "accept",
    b"if-match": "if_match",
    b"if-none-match": "if_none_match",
    b"if-range": "if_range",
    b"range": "range",
}
_FAULTS: Final = (CorevaultError, ObjectMissing)

ReadObject = Callable[[str], bytes]


class PublicReads:
    """Serves cached releases; ``read`` fetches a representation that is not in memory, in a thread."""

    def __init__(self, app: ASGIApp, releases: PublicReleases, read: ReadObject) -> None:
        self._app = app
        self._releases = releases
        self._read = read

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" else None
        reply = None if path is None else self._reply(scope, path[1], Part(path[2]))
        try:
            body = b"" if reply is None else await self._body(reply, scope["method"])
        except _FAULTS:
            reply = None
        if path is None or reply is None:
            await self._app(scope, receive, send)
            return
        if (context := get_current()) is not None:
            context.route = ROUTES[Part(path[2])]
        headers = [(name.lower().encode(), value.encode()) for name, value in reply.headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _reply(self, scope: Scope, release_id: str, part: Part) -> Reply | None:
        """Return the reply, or None for a request that the application must answer."""
        if scope["method"] not in {"GET", "HEAD"}:
            return None
        query, offers = _FORMAT.fullmatch(scope["query_string"]), self._releases.offers(release_id, part)
        read = None if offers is None or query is None else _parse_read(scope, query[1])
        if offers is None or read is None or (read.format is not None and read.format not in offers.by_format):
            return None
        try:
            return offers.reply(read)
        except CorevaultError:
            return None

    async def _body(self, reply: Reply, method: str) -> bytes:
        if reply.status == 304 or method == "HEAD":
            return b""
        name = reply.representation.object
        content = self._releases.body(name)
        if content is None:
            content = await run_in_threadpool(self._read, name)
            self._releases.remember_body(name, content)
        return content if reply.part is None else content[reply.part.first : reply.part.last + 1]


def _parse_read(scope: Scope, chosen: bytes | None) -> ReadRequest | None:
    """Read the headers that choose the reply; None for a credential or a repeated header."""
    values: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name == b"authorization":
            return None
        member = _READ_HEADERS.get(name)
        if member is None or (member == "range" and scope["method"] == "HEAD"):
            continue
        if member in values:
            return None
        values[member] = value.decode("latin-1")
    return ReadRequest(format=None if chosen is None else chosen.decode(), **values)
