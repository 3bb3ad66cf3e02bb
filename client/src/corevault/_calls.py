"""The calls that the blocking and the asynchronous client share."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from corevault._arguments import describe, require_number, require_text, write_time
from corevault._http import Http
from corevault._ids import read_id
from corevault._names import name_dataset
from corevault._show import make_table
from corevault._streams import find_blocks, make_key
from corevault.errors import CorevaultError, InvalidArgument, JobFailed, UnexpectedReply, WrongType
from corevault.model import Mechanism, ModelRequest
from corevault.pages import Page, fetch_page
from corevault.replies.audit import AuditEntry
from corevault.replies.catalogue import Catalogue
from corevault.replies.dataset import Dataset
from corevault.replies.job import Quote, Quotes, make_quote_row
from corevault.replies.key import ApiKey, Me, SigningKey
from corevault.replies.worker import Worker
from corevault.resources.datasets import AsyncDatasets
from corevault.resources.jobs import DEFAULT_METHOD, AsyncJobs, job_request
from corevault.resources.keys import AsyncKeys
from corevault.resources.releases import AsyncReleases
from corevault.verification import read_pins

if TYPE_CHECKING:
    from corevault.pseudocoreset import Pseudocoreset

_MOST_TARGETS, _MOST_ESTIMATES = 20, 4
"""Targets that the server takes in one request, without and with the expected accuracy."""


class Calls:
    """The calls of a client, over blocking or asynchronous connections."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self.datasets = AsyncDatasets(http)
        self.keys = AsyncKeys(http)
        self.jobs = AsyncJobs(http)
        self.releases = AsyncReleases(http)

    async def aclose(self) -> None:
        """Closes the connections.

        >>> other = Client("https://corevault.example")
        >>> other.close()
        """
        await self._http.close()

    async def me(self) -> Me:
        """The id, role and name of the API key in use.

        >>> client.me().role
        'owner'
        """
        return Me.from_json(await self._http.get("/v1/me"))

    async def quote(
        self,
        dataset_id: str | Dataset,
        model: ModelRequest,
        *,
        size: int | None = None,
        method: str = DEFAULT_METHOD,
        epsilon: float | None = None,
        mechanism: Mechanism | None = None,
        parameters: Mapping[str, Any] | None = None,
        expected_accuracy: bool = False,
    ) -> Quote:
        """The price of ``jobs.submit`` with the same arguments. Reads no row and changes nothing.

        With ``expected_accuracy``, the quote estimates by how much noise would widen the intervals; see
        ``ExpectedAccuracy``. This takes the server about a second, and counts as 20 requests of the key's rate limit.

        >>> client.quote("clinic", model, epsilon=0.5).affordable
        True
        """
        given: object = epsilon
        if isinstance(given, Iterable) and not isinstance(given, str):
            raise WrongType(
                f"epsilon must be one number; {describe(given)}. For several, call client.quotes(epsilons=...)."
            )
        body = job_request(
            dataset_id, model, method=method, size=size, epsilon=epsilon, mechanism=mechanism, parameters=parameters
        )
        body |= {"expected_accuracy": True} if expected_accuracy else {}
        return Quote.from_json(await self._http.post("/v1/quotes", await name_dataset(self._http, body)))

    async def quotes(
        self,
        dataset_id: str | Dataset,
        model: ModelRequest,
        *,
        epsilons: Sequence[float],
        size: int | None = None,
        method: str = DEFAULT_METHOD,
        parameters: Mapping[str, Any] | None = None,
        expected_accuracy: bool = False,
    ) -> Any:
        """The prices for several ε, as a table with one row each: a DataFrame if pandas is installed.

        With ``expected_accuracy``, ``widening`` estimates the factor of the interval that widens most. Its range is
        from ``widening_from`` to ``widening_to``. The server needs about a second for each ε.

        >>> client.quotes("clinic", model, epsilons=[0.1, 0.5]).affordable.to_dict()
        {0.1: True, 0.5: True}
        """
        targets = _read_epsilons(epsilons)
        if not targets:
            raise InvalidArgument("epsilons is empty; pass at least one number, or call client.quote for public data.")
        options: dict[str, Any] = {"size": size, "method": method, "parameters": parameters}
        options["expected_accuracy"] = expected_accuracy
        rows = await self.quote_rows(dataset_id, model, epsilons=targets, **options)
        return make_table(rows, index="epsilon")

    async def quote_rows(
        self,
        dataset_id: str | Dataset,
        model: ModelRequest,
        *,
        epsilons: Sequence[float],
        size: int | None = None,
        method: str = DEFAULT_METHOD,
        parameters: Mapping[str, Any] | None = None,
        expected_accuracy: bool = False,
    ) -> list[dict[str, Any]]:
        """The rows of ``quotes`` as dictionaries. Without ``epsilons`` there is one, as for public data.

        >>> [row["affordable"] for row in client.quote_rows("clinic", model, epsilons=[0.1, 15.0])]
        [True, False]
        """
        targets = _read_epsilons(epsilons)
        if not targets:
            options: dict[str, Any] = {"size": size, "method": method, "parameters": parameters}
            single = await self.quote(dataset_id, model, expected_accuracy=expected_accuracy, **options)
            return [make_quote_row(None if single.cost is None else single.cost.epsilon, single, expected_accuracy)]
        rows, most = [], _MOST_ESTIMATES if expected_accuracy else _MOST_TARGETS
        for start in range(0, len(targets), most):
            part = targets[start : start + most]
            body = job_request(
                dataset_id, model, method=method, size=size, epsilon=None, mechanism=None, parameters=parameters
            )
            body |= {"privacy": {"epsilon": part}} | ({"expected_accuracy": True} if expected_accuracy else {})
            asked = await name_dataset(self._http, body)
            found = Quotes.from_json(await self._http.post("/v1/quotes", asked))
            if len(found.quotes) != len(part):
                raise UnexpectedReply("The server's answer has another number of quotes than the request.")
            rows += [
                make_quote_row(each, quote, expected_accuracy) for each, quote in zip(part, found.quotes, strict=True)
            ]
        return rows

    async def buy(
        self,
        dataset_id: str | Dataset,
        model: ModelRequest,
        *,
        size: int | None = None,
        epsilon: float | None = None,
        method: str = DEFAULT_METHOD,
        mechanism: Mechanism | None = None,
        parameters: Mapping[str, Any] | None = None,
        purpose: str | None = None,
        idempotency_key: str | None = None,
        pinned_keys: Iterable[str | SigningKey] | None = None,
        progress: bool = True,
    ) -> "Pseudocoreset":
        """Submits a job, waits for it, and downloads and verifies its release.

        Pass an ``idempotency_key``, so that a restarted script gets the same release instead of buying another one.

        Raises ``BudgetExceeded`` with no balance changed, ``JobFailed``, and ``VerificationError``. Errors after the
        submission have a note, which names the job and the call that gets its release.

        >>> core = client.buy("clinic", model, epsilon=0.2, idempotency_key="age-2026", progress=False)
        >>> core.columns
        ('age', 'sex=male', 'intercept')
        """
        read_pins(pinned_keys)  # a wrong pin is found before the cost is reserved
        job = await self.jobs.submit(
            dataset_id,
            model,
            size=size,
            epsilon=epsilon,
            method=method,
            mechanism=mechanism,
            parameters=parameters,
            purpose=purpose,
            idempotency_key=idempotency_key,
        )
        with _note(f"Job {job.id} was submitted. Do not buy it again: client.jobs.wait({job.id!r}) waits for it."):
            ended = await self.jobs.wait(job, progress=progress)
        assert ended.release_id is not None, "a succeeded job has a release"
        again = f"client.releases.download({ended.release_id!r}) reads it at no further cost."
        with _note(f"Job {job.id} bought release {ended.release_id}. Do not buy it again: {again}"):
            return await self.releases.download(ended.release_id, pinned_keys=pinned_keys)

    async def stream(
        self,
        series: str,
        model: ModelRequest,
        epsilon: float,
        *,
        size: int = 50,
        method: str = DEFAULT_METHOD,
        parameters: Mapping[str, Any] | None = None,
        independent: bool = False,
        owner: str | None = None,
        purchase: str = "stream",
        pinned_keys: Iterable[str | SigningKey] | None = None,
        progress: bool = True,
    ) -> "Pseudocoreset":
        """Buys the same release of every ready dataset of a series, and merges them.

        In a series each person counts once, so every dataset is charged alone. Call it again when there are new
        datasets: only these are charged. The others keep their idempotency keys, which never expire. With another
        ``purchase``, all keys differ, and all releases are bought again.

        The result has at most ``size`` points; see ``corevault.merge``, also for ``independent``. It is the release
        itself if there is only one. ``owner`` is the id of the owner's key, if several owners have such a series.

        Raises ``InvalidArgument`` if no dataset is ready, and the errors of ``buy``. Then call it again: no release is
        bought twice.

        >>> core = client.stream("months", monthly, 0.5, size=20, progress=False)
        >>> core.release.method, len(core.release.diagnostics["datasets"])
        ('merge', 2)
        """
        read_pins(pinned_keys)
        require_number(epsilon, "epsilon")
        require_text(purchase, "purchase")
        require_number(size, "size", lower=1)
        cores = []
        for block in await find_blocks(self._http, series, owner):
            request = job_request(
                block, model, method=method, size=None, epsilon=epsilon, mechanism=None, parameters=parameters
            )
            cores.append(
                await self.buy(
                    block,
                    model,
                    epsilon=epsilon,
                    method=method,
                    parameters=parameters,
                    idempotency_key=make_key(purchase, request),
                    pinned_keys=pinned_keys,
                    progress=progress,
                )
            )
        if len(cores) == 1:
            return cores[0]
        from corevault.merging import merge  # noqa: PLC0415 - SciPy is imported when it is needed

        return await self._http.call(partial(merge, cores, size, independent=independent))

    async def audit_log(
        self,
        *,
        actor: str | ApiKey | None = None,
        action: str | None = None,
        target: str | None = None,
        outcome: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> Page[AuditEntry]:
        """Changes and refusals, newest first (admin, auditor).

        ``actor`` is a key, ``action`` is a method and a path such as ``POST /v1/jobs``, and ``target`` is the id of
        the object of the call. ``outcome`` is succeeded, refused or failed. The times include ``since`` and exclude
        ``until``.

        >>> {entry.outcome for entry in admin.audit_log(outcome="succeeded", limit=10).items}
        {'succeeded'}
        """
        criteria: dict[str, str | int | None] = {"action": action, "target": target, "outcome": outcome, "limit": limit}
        criteria["actor"] = None if actor is None else read_id(actor, ApiKey)
        criteria |= {"since": write_time(since, "since"), "until": write_time(until, "until")}
        return await fetch_page(self._http, "/v1/audit-log", AuditEntry, criteria)

    async def workers(self, *, limit: int | None = None) -> Page[Worker]:
        """The workers and their last signs of life, newest first (admin, auditor).

        >>> {worker.state for worker in admin.workers()} <= {"alive", "silent", "unknown"}
        True
        """
        return await fetch_page(self._http, "/v1/workers", Worker, {"limit": limit})

    async def methods(self) -> Catalogue:
        """The methods and models that the server offers.

        >>> [method.id for method in client.methods().methods if method.default]
        ['dp-psvi-surrogate']
        """
        return Catalogue.from_json(await self._http.get("/v1/methods"))

    async def signing_keys(self) -> Page[SigningKey]:
        """The verification keys that the server publishes, for certificates and for the ledger.

        Keep them, and pass them later as ``pinned_keys``.

        >>> sorted(key.use for key in client.signing_keys())
        ['ledger', 'release']
        """
        return await self.releases.signing_keys()


def _read_epsilons(given: object) -> list[float]:
    """The targets as a list. Raises ``WrongType`` for anything but numbers."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise WrongType(f"epsilons must be a list of numbers; {describe(given)}.")
    targets = [*given]
    for epsilon in targets:
        require_number(epsilon, "Each of epsilons")
    return targets


@contextmanager
def _note(sentence: str) -> Iterator[None]:
    """Adds a note to errors, which Python prints below them. A failed job has bought nothing."""
    try:
        yield
    except JobFailed:
        raise
    except CorevaultError as error:
        error.add_note(sentence)
        raise
