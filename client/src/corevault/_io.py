"""Two ways to wait: blocking, and asynchronous. All calls are written once, as coroutines.

A coroutine over ``BlockingIo`` never suspends, so ``run`` carries it out like a function. So ``Client`` has
the methods of ``AsyncClient``, behind ``run``.
"""

import functools
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import anyio
import httpx

P = ParamSpec("P")
R = TypeVar("R")
Body = Iterator[bytes] | AsyncIterator[bytes]


class Io(Protocol):
    """Requests, pauses and long computations of one client."""

    is_async: bool

    @property
    def client(self) -> httpx.Client | httpx.AsyncClient:
        """The connections."""

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The response, with its body."""

    def stream(self, request: httpx.Request) -> AbstractAsyncContextManager[httpx.Response]:
        """A response whose body is read later."""

    async def read(self, response: httpx.Response) -> None:
        """Reads the body of a streamed response."""

    def lines(self, response: httpx.Response) -> AsyncIterator[str]:
        """The lines of a streamed response, as they arrive."""

    def body(self, chunks: Iterator[bytes]) -> Body:
        """A request's body from chunks, each of which may take time."""

    async def sleep(self, seconds: float) -> None:
        """Waits."""

    async def call(self, function: Callable[..., R], *arguments: Any) -> R:
        """The result of a function that computes or reads files for some time."""

    async def close(self) -> None:
        """Closes the connections."""


class BlockingIo:
    """Waits in the calling thread. Its coroutines never suspend."""

    is_async = False

    def __init__(self, transport: httpx.BaseTransport | None, **options: Any) -> None:
        self._client = httpx.Client(transport=transport, **options)

    @property
    def client(self) -> httpx.Client:
        """The connections."""
        return self._client

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The response, with its body."""
        return self.client.send(request)

    @asynccontextmanager
    async def stream(self, request: httpx.Request) -> AsyncIterator[httpx.Response]:
        """A response whose body is read later."""
        response = self.client.send(request, stream=True)
        try:
            yield response
        finally:
            response.close()

    async def read(self, response: httpx.Response) -> None:
        """Reads the body of a streamed response."""
        response.read()

    async def lines(self, response: httpx.Response) -> AsyncIterator[str]:
        """The lines of a streamed response, as they arrive."""
        for line in response.iter_lines():
            yield line

    def body(self, chunks: Iterator[bytes]) -> Body:
        """The chunks."""
        return chunks

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)

    async def call(self, function: Callable[..., R], *arguments: Any) -> R:
        """The result of a function."""
        return function(*arguments)

    async def close(self) -> None:
        """Closes the connections."""
        self.client.close()


class AsyncIo:
    """Suspends the calling task. Long computations and reads of files run in a thread."""

    is_async = True

    def __init__(self, transport: httpx.AsyncBaseTransport | None, **options: Any) -> None:
        self._client = httpx.AsyncClient(transport=transport, **options)

    @property
    def client(self) -> httpx.AsyncClient:
        """The connections."""
        return self._client

    async def send(self, request: httpx.Request) -> httpx.Response:
        """The response, with its body."""
        return await self.client.send(request)

    @asynccontextmanager
    async def stream(self, request: httpx.Request) -> AsyncIterator[httpx.Response]:
        """A response whose body is read later."""
        response = await self.client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    async def read(self, response: httpx.Response) -> None:
        """Reads the body of a streamed response."""
        await response.aread()

    def lines(self, response: httpx.Response) -> AsyncIterator[str]:
        """The lines of a streamed response, as they arrive."""
        return response.aiter_lines()

    async def body(self, chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
        """The chunks, each of which a thread makes."""
        while (chunk := await self.call(next, chunks, None)) is not None:
            yield chunk

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await anyio.sleep(seconds)

    async def call(self, function: Callable[..., R], *arguments: Any) -> R:
        """The result of a function, which runs in a thread."""
        return await anyio.to_thread.run_sync(functools.partial(function, *arguments))

    async def close(self) -> None:
        """Closes the connections."""
        await self.client.aclose()


def run(call: Awaitable[R]) -> R:
    """The result of a coroutine over ``BlockingIo``."""
    steps = call.__await__()
    try:
        next(steps)
    except StopIteration as ended:
        result: R = ended.value
        return result
    raise AssertionError("a coroutine over blocking connections has suspended")


def iterate(items: AsyncGenerator[R, None]) -> Iterator[R]:
    """The items of an asynchronous generator over ``BlockingIo``."""
    try:
        while True:
            try:
                item = run(anext(items))
            except StopAsyncIteration:
                return
            yield item
    finally:
        run(items.aclose())


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """The blocking method of an asynchronous one. The object has the asynchronous object as ``_calls``."""

    @functools.wraps(method)
    def call(self: Any, /, *arguments: P.args, **named: P.kwargs) -> R:
        return run(method(self._calls, *arguments, **named))

    return call
