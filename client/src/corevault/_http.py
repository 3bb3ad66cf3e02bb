"""An HTTP session with typed errors. It retries a request only where that is safe."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import httpx

from corevault._arguments import as_json, describe, require_number, require_text
from corevault._io import Io
from corevault._retry import RetryPolicy, parse_retry_after
from corevault.errors import (
    ApiError,
    ClientClosed,
    ConnectionFailed,
    InvalidArgument,
    RateLimited,
    UnexpectedReply,
    WrongType,
    api_error,
)

Params = Mapping[str, str | int | None]
R = TypeVar("R")
_PAGES = re.compile(r"(/dashboard|/docs|/openapi\.json)(/|$)")
_VISIBLE = re.compile(r"[!-~]+")


class Http:
    """A connection pool with the API key and the retry rules; not part of the public interface.

    All methods that send are coroutines. Over a blocking pool they do not suspend; see ``corevault._io``.

    It retries GET, HEAD, and POST with an ``Idempotency-Key``. It also retries other requests after status 429, because
    then the server has done nothing. A request whose body is a stream is never retried.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        timeout: float | httpx.Timeout,
        policy: RetryPolicy,
        make_io: Callable[..., Io],
    ) -> None:
        address = _root_of(base_url)
        headers = {"User-Agent": f"corevault-python/{version('corevault')}", "Accept": "application/json"}
        if not isinstance(api_key, str | None):
            raise WrongType("api_key must be text: the 'key' of a created ApiKey, or the content of a key file.")
        if api_key is not None:
            secret = api_key.strip()  # a key file may end in a line break
            if not _VISIBLE.fullmatch(secret):
                words = "consist of visible ASCII characters; pass the key alone" if secret else "not be empty"
                raise InvalidArgument(f"api_key must {words}.")
            headers["Authorization"] = f"Bearer {secret}"
        _check_timeout(timeout)
        self.address = address
        self.io = make_io(base_url=address, headers=headers, timeout=timeout)
        self._policy = policy

    async def close(self) -> None:
        """Closes the connections."""
        await self.io.close()

    async def call(self, function: Callable[..., R], *arguments: Any) -> R:
        """The result of a function that computes or reads files for some time."""
        return await self.io.call(function, *arguments)

    async def get(self, path: str, params: Params | None = None) -> Any:
        """The decoded JSON of a GET. It omits parameters with the value None."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        for name, value in given.items():
            if not isinstance(value, str | int):
                raise WrongType(f"{name} must be text or a whole number; {describe(value)}.")
        return decode(await self.send(self._build("GET", path, params=given), repeatable=True))

    async def post(self, path: str, body: object = None, *, idempotency_key: str | None = None) -> Any:
        """The decoded JSON of a POST with an Idempotency-Key, which may be retried."""
        key = str(uuid4()) if idempotency_key is None else idempotency_key
        check_key(key)
        headers = {"Idempotency-Key": key}
        request = self._build("POST", path, json=as_json(body), headers=headers)
        return decode(await self.send(request, repeatable=True))

    async def send_once(self, method: str, path: str, body: object = None) -> Any:
        """The decoded JSON of a request that is retried only after status 429."""
        return decode(await self.send(self._build(method, path, json=as_json(body)), repeatable=False))

    async def put_stream(self, path: str, chunks: Iterator[bytes], headers: Mapping[str, str]) -> Any:
        """Sends a PUT chunk by chunk. It is not retried, because some streams can be read only once."""
        request = self._build("PUT", path, content=self.io.body(chunks), headers=dict(headers))
        return decode(await self.send(request, repeatable=False))

    @property
    def may_retry(self) -> bool:
        """Whether the policy allows retries at all."""
        return self._policy.max_retries > 0

    async def patch_bytes(self, path: str, content: bytes, headers: Mapping[str, str]) -> None:
        """Sends a PATCH, which is retried only after status 429.

        After another failure, the caller must ask the server for the offset.
        """
        await self.send(self._build("PATCH", path, content=content, headers=dict(headers)), repeatable=False)

    async def head(self, path: str) -> httpx.Headers:
        """The headers of a HEAD."""
        return (await self.send(self._build("HEAD", path), repeatable=True)).headers

    async def fetch(self, path: str, params: Params, accept: str) -> httpx.Response:
        """The response to a GET, whose body is bytes."""
        headers = {"Accept": accept}
        return await self.send(self._build("GET", path, params=dict(params), headers=headers), repeatable=True)

    @asynccontextmanager
    async def lines(
        self, path: str, headers: Mapping[str, str], read_timeout_seconds: float
    ) -> AsyncIterator[AsyncIterator[str]]:
        """The lines of an event stream, as they arrive. The caller resumes a broken stream.

        Raises ``UnexpectedReply`` if the answer is not of the type ``text/event-stream``.
        """
        self._check_open()
        timeout = httpx.Timeout(**{**self.io.client.timeout.as_dict(), "read": read_timeout_seconds})
        accepted = {"Accept": "text/event-stream", **headers}
        try:
            async with self.io.stream(self._build("GET", path, headers=accepted, timeout=timeout)) as response:
                if not response.is_success:
                    await self.io.read(response)
                    raise _error_of(response)
                if not response.headers.get("content-type", "").startswith("text/event-stream"):
                    raise UnexpectedReply("The server did not answer with an event stream; poll with jobs.get instead.")
                yield self.io.lines(response)
        except httpx.RequestError as error:
            raise ConnectionFailed("The event stream was interrupted; pass last_event_id to resume it.") from error

    async def send(self, request: httpx.Request, *, repeatable: bool) -> httpx.Response:
        """Sends a request, and repeats it as the policy allows. Raises ``ApiError`` or ``ConnectionFailed``.

        Unless it is ``repeatable``, it is repeated only after status 429, and only if its body is not a stream.
        """
        self._check_open()
        attempt, is_whole = 0, isinstance(request.stream, httpx.ByteStream)
        while True:
            failure: ApiError | ConnectionFailed
            try:
                response = await self.io.send(request)
            except httpx.RequestError as error:
                place = f"{request.url.scheme}://{request.url.netloc.decode('ascii')}"
                failure = ConnectionFailed(f"No answer from {place} ({type(error).__name__}); {_advise(str(error))}.")
                failure.__cause__ = error
                delay = self._policy.delay_after_failure(attempt)
            else:
                if response.is_success:
                    return response
                failure = _error_of(response)
                delay = self._policy.delay_after_error(attempt, failure)
            if delay is None or not (repeatable or (is_whole and isinstance(failure, RateLimited))):
                raise failure
            await self.io.sleep(delay)
            attempt += 1

    def _build(self, method: str, path: str, **options: Any) -> httpx.Request:
        return self.io.client.build_request(method, path, **options)

    def _check_open(self) -> None:
        if self.io.client.is_closed:
            raise ClientClosed("This client is closed; make a new one, and use it inside its with block.")


def _root_of(base_url: object) -> str:
    """The server's address without a final ``/v1``, because every path begins with ``/v1``."""
    if not isinstance(base_url, str):
        raise WrongType(f"base_url must be text such as https://corevault.example; {describe(base_url)}.")
    address = base_url.strip()
    if not address.startswith(("http://", "https://")):
        raise InvalidArgument("base_url must start with http:// or https://.")
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise InvalidArgument("base_url must be the address of a server, such as https://corevault.example.") from error
    if not url.host or url.query or url.fragment or re.search(r"\s", address) or not 0 < (url.port or 1) < 65536:
        raise InvalidArgument("base_url must name a server, such as https://corevault.example, and have no query.")
    if page := _PAGES.search(url.path):
        raise InvalidArgument(f"base_url must end before {page[1]}, as in https://corevault.example.")
    return address.rstrip("/").removesuffix("/v1")


def _advise(error: str) -> str:
    """The remedy for a failed connection."""
    if "CERTIFICATE_VERIFY_FAILED" in error:
        return "its certificate is not trusted here. Check base_url, or set SSL_CERT_FILE to your authority's file"
    if "[SSL" in error:
        return "it uses no TLS. Check base_url: it may need http:// instead of https://"
    return "check base_url, and that the server is running"


def check_key(idempotency_key: object) -> None:
    """Raises ``InvalidArgument`` unless ``idempotency_key`` is a valid key."""
    require_text(idempotency_key, "idempotency_key")
    if not _VISIBLE.fullmatch(str(idempotency_key)):
        raise InvalidArgument("idempotency_key must consist of 1 to 128 visible ASCII characters.")


def _check_timeout(timeout: object) -> None:
    if not isinstance(timeout, httpx.Timeout):
        require_number(timeout, "timeout", lower=0.0)


def quote_segment(name: str) -> str:
    """``name`` as one segment of a path, percent-encoded."""
    if not isinstance(name, str):
        raise WrongType(f"An id must be text; {describe(name)}.")
    if name in ("", ".", ".."):
        raise InvalidArgument("An id must be given; this one is empty or consists of dots.")
    try:
        return quote(name, safe="")
    except UnicodeEncodeError as error:
        raise InvalidArgument("An id must be text that UTF-8 can encode; it holds half a surrogate pair.") from error


def decode(response: httpx.Response) -> Any:
    """The JSON of a successful answer; None for an answer without a body."""
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError as error:
        raise UnexpectedReply("The answer is not JSON; base_url must be the address of a Corevault server.") from error


def _error_of(response: httpx.Response) -> ApiError:
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if isinstance(problem, dict) and "request_id" not in problem and "X-Request-Id" in response.headers:
        problem["request_id"] = response.headers["X-Request-Id"]
    return api_error(
        problem, status=response.status_code, retry_after=parse_retry_after(response.headers.get("Retry-After"))
    )
