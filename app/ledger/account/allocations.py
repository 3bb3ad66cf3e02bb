"""An analyst's part of a dataset's limit: a cap of its own, charged with the account or not at all.

Governance, not a guarantee: releases are public, so what holds for a person in the data is the account's limit.
"""

from collections.abc import Mapping

from app.db import WriteSession
from app.errors import Fault, InvalidRequest, StateConflict
from app.ledger.account import locked_account
from app.ledger.account.opening import design_pot
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import LIMIT_CHANGED
from app.ledger.entries.meter import Pot, filter_pot
from app.privacy.filter import Filter

IN_USE = "An allocation that jobs were charged to can be changed, not taken away or lowered below what they use."


def allocate(context: LedgerContext, tx: WriteSession, dataset_id: str, allocations: Mapping[str, float]) -> None:
    """Let the callers named spend at most so much epsilon each on the dataset; whoever is not named spends freely.

    What a caller spent before it was named does not count.

    Raises:
        InvalidRequest: at ``/allocations/{index}/epsilon``.
        StateConflict: an allocation that is in use would go, or fall below what is used; or the account is frozen.
    """
    locked = locked_account.lock_active(context, tx, dataset_id)
    known = locked.balance.datasets[dataset_id].allocations
    if any(not pot.untouched for caller_id, pot in known.items() if caller_id not in allocations):
        raise StateConflict(IN_USE)
    delta = locked.balance.total.delta
    after = {
        caller_id: _pot(known.get(caller_id), epsilon, delta, context.max_epsilon, f"/allocations/{index}/epsilon")
        for index, (caller_id, epsilon) in enumerate(allocations.items())
    }
    before = {caller_id: pot.epsilon for caller_id, pot in known.items()}
    if dict(allocations) != before:
        body = {"allocations": {caller_id: pot.to_json() for caller_id, pot in after.items()}}
        locked.append(LIMIT_CHANGED, dataset_id, body)


def _pot(known: Pot | None, epsilon: float, delta: float, max_epsilon: float, pointer: str) -> Pot:
    """Empty, at the orders that are in use where there are any."""
    fresh = design_pot(epsilon, delta if known is None else known.delta, max_epsilon, pointer)
    if known is None or known.untouched:
        return fresh
    try:
        kept = filter_pot(Filter(epsilon, known.delta, known.orders, known.weights))
    except ValueError:
        raise InvalidRequest(faults=(Fault(pointer, "is not an epsilon"),)) from None
    if not known.rebound(epsilon, known.delta, kept.meter.bounds).meter.holds:
        raise StateConflict(IN_USE)
    return kept
