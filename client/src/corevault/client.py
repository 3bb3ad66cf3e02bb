"""The client and its settings."""

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

    ``base_url`` is the server's address, with or without ``/v1`` at its end. Public releases need no ``api_key``.
    ``timeout`` in seconds applies to connecting and to each read and write.

    ``max_retries`` limits the retries after 429, 503 and broken connections. The client retries GET, and POST with the
    ``Idempotency-Key`` that it generates. After 429 the server has done nothing, so every request except a streamed
    upload is retried. The client obeys ``Retry-After``. ``transport`` replaces the network, as in httpx. Threads may
    share one client.

    Raises ``InvalidArgument`` for a malformed address or key.
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
        """The id, role and name of the API key in use."""
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
        """The price of ``jobs.submit`` with the same arguments. Reads no row and changes nothing."""
        body = job_request(
            dataset_id, model, method=method, size=size, epsilon=epsilon, mechanism=mechanism, parameters=parameters
        )
        return Quote.from_json(self._http.post("/v1/quotes", body))

    def methods(self) -> Catalogue:
        """The methods and models that the server offers."""
        return Catalogue.from_json(self._http.get("/v1/methods"))

    def signing_keys(self) -> Page[SigningKey]:
        """The verification keys that the server publishes, for certificates and for the ledger.

        Keep them, and pass them later as ``pinned_keys``.
        """
        return self.releases.signing_keys()
