"""The client."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from corevault._http import Http
from corevault._retry import RetryPolicy
from corevault.model import Mechanism, ModelRequest
from corevault.pages import Page
from corevault.replies.catalogue import Catalogue
from corevault.replies.dataset import Dataset
from corevault.replies.job import Quote
from corevault.replies.key import Me, SigningKey
from corevault.resources.datasets import Datasets
from corevault.resources.jobs import DEFAULT_METHOD, Jobs, job_request
from corevault.resources.keys import Keys
from corevault.resources.releases import Releases


class Client:
    """A connection to a Corevault server. Use it in a ``with`` block, or ``close()`` it.

    ``base_url`` is the server's address, with or without ``/v1`` at its end. ``api_key`` None is enough for public
    releases. ``timeout`` in seconds applies to connecting and to each read and write.

    ``max_retries`` limits the retries after 429, 503 and broken connections. Only calls that may be repeated are
    retried: GET, and POST with the ``Idempotency-Key`` that the client makes. After 429, where nothing was done, every
    call is, except a streamed upload. ``Retry-After`` is obeyed. ``transport`` replaces the network, as in httpx.
    Threads may share one client.

    Raises ``InvalidArgument`` for an address or a key that cannot be one.
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
        self._http = Http(base_url, api_key, timeout, transport, RetryPolicy(max_retries))
        self.datasets = Datasets(self._http)
        self.keys = Keys(self._http)
        self.jobs = Jobs(self._http)
        self.releases = Releases(self._http)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def me(self) -> Me:
        """Whose key this is."""
        return Me.from_json(self._http.get("/v1/me"))

    def quote(
        self,
        dataset_id: str | Dataset,
        model: ModelRequest,
        *,
        size: int,
        method: str = DEFAULT_METHOD,
        epsilon: float | None = None,
        mechanism: Mechanism | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Quote:
        """What ``jobs.submit`` would cost with the same arguments; reads no row and changes nothing."""
        body = job_request(
            dataset_id, model, method=method, size=size, epsilon=epsilon, mechanism=mechanism, parameters=parameters
        )
        return Quote.from_json(self._http.post("/v1/quotes", body))

    def methods(self) -> Catalogue:
        """The methods and models of the server, and which may run on private data."""
        return Catalogue.from_json(self._http.get("/v1/methods"))

    def signing_keys(self) -> Page[SigningKey]:
        """The verification keys that the server publishes, of certificates and of the ledger.

        Keep them, and pass them later as ``pinned_keys``.
        """
        return self.releases.signing_keys()
