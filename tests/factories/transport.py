"""A synchronous HTTP client of an ASGI application in this process: no socket, no port."""

from types import TracebackType

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import ASGIApp


class AppTransport(httpx.BaseTransport):
    """Runs each request on an event loop in another thread.

    The whole response is read before it is returned.

    ``client`` is the client address that the application sees. With ``raises``, a test gets the exceptions that a
    server would log.
    """

    def __init__(self, app: ASGIApp, client: tuple[str, int] = ("127.0.0.1", 50_000), *, raises: bool = False) -> None:
        self._inner = httpx.ASGITransport(app, raise_app_exceptions=raises, client=client)
        self._portal_context = start_blocking_portal()
        self._portal: BlockingPortal = self._portal_context.__enter__()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._portal.call(self._handle, request, request.read())

    async def _handle(self, request: httpx.Request, content: bytes) -> httpx.Response:
        forwarded = httpx.Request(request.method, request.url, headers=request.headers, content=content)
        response = await self._inner.handle_async_request(forwarded)
        return httpx.Response(response.status_code, headers=response.headers, content=await response.aread())

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._portal_context is not None:
            self._portal_context.__exit__(None, None, None)
