"""Allocations: a cap for one analyst within a dataset's limit, charged together with the account.

They divide a budget, and do not strengthen the guarantee. Analysts can share their releases, so only the account's
limit protects the people in the data.
"""

from collections.abc import Mapping

from app.db import WriteSession
from app.errors import Fault, InvalidRequest, StateConflict
from app.ledger.account import locked_account
from app.ledger.account.opening import make_design_pot
from app.ledger.context import LedgerContext
from app.ledger.entries.balance import LIMIT_CHANGED
from app.ledger.entries.meter import Pot, filter_pot
from app.privacy.filter import Filter

IN_USE = "An allocation with charged jobs cannot be removed, or lowered below the cost of these jobs."


def allocate(context: LedgerContext, tx: WriteSession, dataset_id: str, allocations: Mapping[str, float]) -> None:
    """Set the most epsilon that each named caller may spend on the dataset; others have no cap.

    Charges from before a caller's first allocation do not count.

    Raises:
        InvalidRequest: at ``/allocations/{index}/epsilon``.
        StateConflict: an allocation with charges would be removed, or would fall below them; or the account is frozen.
    """
    locked = locked_account.lock_active(context, tx, dataset_id)
    before = locked.balance.datasets[dataset_id].allocations
    if any(not pot.untouched for caller_id, pot in before.items() if caller_id not in allocations):
        raise StateConflict(IN_USE)
    delta = locked.balance.total.delta
    after = {
        caller_id: _pot(before.get(caller_id), epsilon, delta, context.max_epsilon, f"/allocations/{index}/epsilon")
        for index, (caller_id, epsilon) in enumerate(allocations.items())
    }
    if dict(allocations) != {caller_id: pot.epsilon for caller_id, pot in before.items()}:
        body = {"allocations": {caller_id: pot.to_json() for caller_id, pot in after.items()}}
        locked.append(LIMIT_CHANGED, dataset_id, body)


def _pot(before: Pot | None, epsilon: float, delta: float, max_epsilon: float, pointer: str) -> Pot:
    """Make the pot of an allocation. If it is in use, it keeps its orders, and its charges must fit.

    Raises:
        InvalidRequest: at ``pointer``.
        StateConflict: the charges exceed ``epsilon``.
    """
    fresh = make_design_pot(epsilon, delta if before is None else before.delta, max_epsilon, pointer)
    if before is None or before.untouched:
        return fresh
    try:
        pot = filter_pot(Filter(epsilon, before.delta, before.orders, before.weights))
    except ValueError:
        raise InvalidRequest(faults=(Fault(pointer, "Use a number that can be an epsilon."),)) from None
    if not before.rebound(epsilon, before.delta, pot.meter.bounds).meter.holds:
        raise StateConflict(IN_USE)
    return pot
