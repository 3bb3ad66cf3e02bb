"""The client and its settings."""

from functools import partial
from types import TracebackType
from typing import Any, Self

import httpx

from corevault._calls import Calls
from corevault._http import Http
from corevault._io import AsyncIo, BlockingIo, blocking
from corevault._retry import RetryPolicy
from corevault.resources.datasets import Datasets
from corevault.resources.jobs import Jobs
from corevault.resources.keys import Keys
from corevault.resources.releases import Releases


class AsyncClient(Calls):
    """A connection for asyncio. Use it in an ``async with`` block, or ``aclose()`` it.

    It takes the arguments of ``Client`` and has its methods: await each of them, and iterate with ``async for`` over
    pages and ``jobs.events``. ``transport`` is an ``httpx.AsyncBaseTransport``. Checks of tables, reads of files and
    computations run in a thread. A cancelled call ends its request. A job that was submitted continues on the server.

    Raises ``InvalidArgument`` for a malformed address or key.

    >>> async def list_names(client):
    ...     return [dataset.name async for dataset in await client.datasets.list()]
    >>> "clinic" in asyncio.run(list_names(async_client))
    True
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout: float | httpx.Timeout = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
        max_retries: int = 2,
    ) -> None:
        super().__init__(Http(base_url, api_key, timeout, RetryPolicy(max_retries), partial(AsyncIo, transport)))

    @classmethod
    def from_env(cls, **options: Any) -> Self:
        """A client for the server of the environment or of ``corevault login``, as ``Client.from_env``.

        >>> AsyncClient.from_env()
        AsyncClient('https://corevault.example')
        """
        return cls(*_find_credentials(), **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._http.address!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Client:
    """A connection to a Corevault server. Use it in a ``with`` block, or ``close()`` it.

    ``base_url`` is the server's address, with or without ``/v1`` at its end. Public releases need no ``api_key``.
    ``timeout`` in seconds applies to connecting and to each read and write.

    ``max_retries`` limits the retries after 429, 503 and broken connections. The client retries GET, and POST with the
    ``Idempotency-Key`` that it generates. After 429 the server has done nothing, so every request except a streamed
    upload is retried. The client obeys ``Retry-After``. ``transport`` replaces the network, as in httpx. Threads may
    share one client.

    Raises ``InvalidArgument`` for a malformed address or key.

    >>> with Client("https://corevault.example", api_key="cv_1") as other:
    ...     other
    Client('https://corevault.example')
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None = None,
        *,
        timeout: float | httpx.Timeout = 30.0,
        transport: httpx.BaseTransport | None = None,
        max_retries: int = 2,
    ) -> None:
        self._http = Http(base_url, api_key, timeout, RetryPolicy(max_retries), partial(BlockingIo, transport))
        self._calls = Calls(self._http)
        self.datasets = Datasets(self._calls.datasets)
        self.keys = Keys(self._calls.keys)
        self.jobs = Jobs(self._calls.jobs)
        self.releases = Releases(self._calls.releases)

    @classmethod
    def from_env(cls, **options: Any) -> Self:
        """A client for the server of the environment or of ``corevault login``; see ``corevault.connect``.

        Raises ``InvalidArgument`` if neither names a server.

        >>> Client.from_env()
        Client('https://corevault.example')
        """
        return cls(*_find_credentials(), **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._http.address!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    close = blocking(Calls.aclose)
    me = blocking(Calls.me)
    quote = blocking(Calls.quote)
    quotes = blocking(Calls.quotes)
    quote_rows = blocking(Calls.quote_rows)
    buy = blocking(Calls.buy)
    stream = blocking(Calls.stream)
    audit_log = blocking(Calls.audit_log)
    workers = blocking(Calls.workers)
    methods = blocking(Calls.methods)
    signing_keys = blocking(Calls.signing_keys)


def _find_credentials() -> tuple[str, str | None]:
    from corevault.connection import find_credentials  # noqa: PLC0415 - it imports this module

    return find_credentials()
