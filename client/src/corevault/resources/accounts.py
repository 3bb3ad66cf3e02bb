"""The calls of ``client.datasets`` about the account of a dataset: its budget, its ledger, and what-if questions."""

from collections.abc import Iterable

from corevault._arguments import require_number, require_text
from corevault._http import Http, quote_segment
from corevault._ids import read_id
from corevault._io import blocking
from corevault._names import find_dataset_id
from corevault.ledger_chain import LedgerCheck, VerifiedLedger
from corevault.pages import Page, fetch_page
from corevault.replies.dataset import Budget, Dataset, LedgerEntry, RefusedJobs
from corevault.replies.key import ApiKey, SigningKey
from corevault.replies.outlook import Comparison, JobOutlook, Recomputation
from corevault.replies.population import Population
from corevault.verification import read_pins


class AsyncAccounts:
    """The methods of ``Accounts`` for an ``AsyncClient``. Each is awaited.

    >>> asyncio.run(async_client.datasets.budget("clinic")).unit
    'row'
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    async def populations(self, *, limit: int | None = None) -> Page[Population]:
        """The populations of the datasets that the key may see, with their accounts.

        >>> next(iter(client.datasets.populations())).unit
        {'kind': 'row'}
        """
        return await fetch_page(self._http, "/v1/populations", Population, {"limit": limit})

    async def budget(self, dataset_id: str | Dataset) -> Budget:
        """The limit of the account, and the spent, reserved and remaining cost.

        >>> client.datasets.budget("clinic").limit
        Cost(epsilon=10, delta=1e-06)
        """
        return Budget.from_json(await self._http.get(f"/v1/datasets/{await self._quote_id(dataset_id)}/budget"))

    async def set_budget(self, dataset_id: str | Dataset, *, epsilon: float, delta: float | None = None) -> Budget:
        """Sets the total limit (owner).

        A lower limit applies at once, but not below the spent cost. Only a limit above the highest so far needs
        ``delta``, and opens a tranche with it. No job can use two tranches, so create a dataset with the highest limit
        that you would accept. Afterwards all costs are stated at the new δ, so their ε is a little smaller.

        >>> third = client.datasets.create("third", schema, slots=500, epsilon=2.0)
        >>> client.datasets.set_budget(third, epsilon=1.0).limit.epsilon
        1.0
        """
        dataset_id, body = await find_dataset_id(self._http, dataset_id), make_limit(epsilon, delta)
        await self._http.send_once("PUT", f"/v1/datasets/{await self._quote_id(dataset_id)}/budget", body)
        return await self.budget(dataset_id)

    async def unfreeze(self, dataset_id: str | Dataset, *, reason: str) -> Budget:
        """Ends the freeze of a dataset's account (admin).

        The ledger and the audit log keep ``reason``, which has at most 500 characters. Raises ``StateConflict`` where
        tampering caused the freeze, and where the account is not frozen.

        >>> admin.datasets.unfreeze(dataset, reason="A fault of the service, since repaired.")
        Traceback (most recent call last):
            ...
        corevault.errors.StateConflict: ...
        """
        require_text(reason, "reason")
        return Budget.from_json(
            await self._http.post(f"/v1/datasets/{await self._quote_id(dataset_id)}/unfreeze", {"reason": reason})
        )

    async def _quote_id(self, dataset_id: str | Dataset) -> str:
        return quote_segment(await find_dataset_id(self._http, dataset_id))

    async def ledger(self, dataset_id: str | Dataset, *, limit: int | None = None) -> Page[LedgerEntry]:
        """The account's entries, newest first (owner, auditor).

        >>> [entry.kind for entry in client.datasets.ledger("clinic")][-1]
        'account_opened'
        """
        return await fetch_page(
            self._http, f"/v1/datasets/{await self._quote_id(dataset_id)}/ledger", LedgerEntry, {"limit": limit}
        )

    async def refusals(self, dataset_id: str | Dataset, *, limit: int | None = None) -> Page[RefusedJobs]:
        """Jobs that the account's budget did not cover, newest first (owner, auditor).

        >>> list(client.datasets.refusals("clinic"))
        []
        """
        return await fetch_page(
            self._http, f"/v1/datasets/{await self._quote_id(dataset_id)}/refusals", RefusedJobs, {"limit": limit}
        )

    async def preview_job(self, dataset_id: str | Dataset, *, epsilon: float) -> JobOutlook:
        """The consequence of a job that costs ``epsilon``: balance and risk after it. Changes nothing.

        A job with a model has a ``quote``, whose price depends on the method.

        >>> client.datasets.preview_job("clinic", epsilon=0.5).affordable
        True
        """
        require_number(epsilon, "epsilon")
        return JobOutlook.from_json(await self._ask(dataset_id, "job", {"epsilon": epsilon}))

    async def preview_budget(
        self, dataset_id: str | Dataset, *, epsilon: float, delta: float | None = None
    ) -> Comparison:
        """The account before and after ``set_budget`` with the same arguments (owner). Changes nothing.

        >>> compared = client.datasets.preview_budget("clinic", epsilon=9.0)
        >>> compared.before.limit.epsilon, compared.after.limit.epsilon
        (10.0, 9.0)
        """
        require_number(epsilon, "epsilon")
        return Comparison.from_json(await self._ask(dataset_id, "limit", make_limit(epsilon, delta)))

    async def preview_allocation(
        self, dataset_id: str | Dataset, key_id: str | ApiKey, *, epsilon: float | None
    ) -> Comparison:
        """The account before and after an allocation for one key (owner). Changes nothing.

        None ends the allocation. Other allocations do not change. ``update`` with ``allocations`` makes the change.

        >>> eva = admin.keys.create("eva", "analyst")
        >>> shared = client.datasets.create("shared", schema, slots=500, epsilon=2.0, shared_with=[eva])
        >>> client.datasets.preview_allocation(shared, eva, epsilon=0.5).after.allocation.limit.epsilon
        0.5
        >>> client.datasets.update(shared, allocations={eva: 0.5}).name
        'shared'
        >>> [part.limit.epsilon for part in client.datasets.budget(shared).allocations]
        [0.5]
        """
        if epsilon is not None:
            require_number(epsilon, "epsilon")
        body = {"key_id": read_id(key_id, ApiKey), "epsilon": epsilon}
        return Comparison.from_json(await self._ask(dataset_id, "allocation", body))

    async def _ask(self, dataset_id: str | Dataset, question: str, body: object) -> object:
        answer: object = await self._http.post(
            f"/v1/datasets/{await self._quote_id(dataset_id)}/what-if/{question}", body
        )
        return answer

    async def recompute_ledger(self, dataset_id: str | Dataset) -> Recomputation:
        """The server's verification: it recomputes the balance from all entries (owner, auditor).

        A server verifies one ledger at a time, and else answers ``RateLimited``. ``verify_ledger`` does not trust the
        server.

        >>> found = client.datasets.recompute_ledger("clinic")
        >>> found.verifies, found.newest.sequence > 1
        (True, True)
        """
        path = f"/v1/datasets/{await self._quote_id(dataset_id)}/ledger/verification"
        return Recomputation.from_json(await self._http.get(path))

    async def verify_ledger(
        self, dataset_id: str | Dataset, *, pinned_keys: Iterable[str | SigningKey] | None = None
    ) -> VerifiedLedger:
        """Verifies the account's hashes and signatures on this machine (owner, auditor).

        It downloads the whole chain in parts, and keeps the hash of each entry. It adds up no costs;
        ``recompute_ledger`` does. Without ``pinned_keys``, the keys come from the server.

        Raises ``VerificationError``, which names the first entry that does not verify.

        >>> ledger = client.datasets.verify_ledger("clinic", pinned_keys=client.signing_keys())
        >>> ledger.find(ledger.newest_hash) == ledger.entries
        True
        """
        path = f"/v1/datasets/{await self._quote_id(dataset_id)}/ledger/chain"
        check = LedgerCheck(read_pins(pinned_keys, use="ledger"))
        after: int | None = 0
        while after is not None:
            part = await self._http.get(path, {"after": after})
            after = await self._http.call(check.add, part)
        return check.end()


class Accounts:
    """Budgets and ledgers. Methods accept a ``Dataset``, its id or its name.

    >>> client.datasets.budget("clinic").unit
    'row'
    """

    def __init__(self, calls: AsyncAccounts) -> None:
        self._calls = calls

    populations = blocking(AsyncAccounts.populations)
    budget = blocking(AsyncAccounts.budget)
    set_budget = blocking(AsyncAccounts.set_budget)
    preview_job = blocking(AsyncAccounts.preview_job)
    preview_budget = blocking(AsyncAccounts.preview_budget)
    preview_allocation = blocking(AsyncAccounts.preview_allocation)
    unfreeze = blocking(AsyncAccounts.unfreeze)
    ledger = blocking(AsyncAccounts.ledger)
    refusals = blocking(AsyncAccounts.refusals)
    recompute_ledger = blocking(AsyncAccounts.recompute_ledger)
    verify_ledger = blocking(AsyncAccounts.verify_ledger)


def make_limit(epsilon: float, delta: float | None) -> dict[str, float]:
    """The body of a limit; ``delta`` is left out if it is None."""
    return {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
