"""The two-phase transfer of a job's charge: reserved, opened, settled; or voided before it is opened."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.orm.attributes import set_committed_value

from app.db import ReadSession, WriteSession
from app.errors import BudgetExceeded, NotFound, StateConflict
from app.ledger.account import locked_account
from app.ledger.account.locked_account import LockedAccount
from app.ledger.context import LedgerContext
from app.ledger.entries import admission, commitments, writer
from app.ledger.entries.admission import Preview
from app.ledger.entries.balance import OPENED, RESERVED, SETTLED, VOIDED, Balance
from app.ledger.entries.charge import Charge
from app.ledger.entries.commitments import Commitment, Terms
from app.ledger.integrity import certificate_checks
from app.ledger.models import Reservation
from app.privacy.events import PrivacyEvent, flatten, from_json, merge, to_json


def reserve(
    context: LedgerContext,
    tx: WriteSession,
    dataset_id: str,
    job_id: str,
    charge: Charge,
    *,
    commitment: Commitment,
    caller_id: str | None = None,
) -> Preview:
    """Admit the charge and reserve it, or refuse it and change nothing.

    ``commitment`` is pinned and signed. The allocation of ``caller_id`` is charged too.

    Raises:
        BudgetExceeded: it does not fit.
        StateConflict: the account is frozen, or was just frozen because the dataset's declaration was altered; or the
            job has a reservation already.
    """
    locked = locked_account.lock_active(context, tx, dataset_id)
    if not commitments.is_as_declared(locked.balance, dataset_id, commitment):
        locked_account.freeze_durably(tx, locked.account, dataset_id)
        raise StateConflict(commitments.ALTERED)
    if job_id in locked.balance.live:  # the index refuses one that has ended
        raise StateConflict(writer.PLACED_ALREADY)
    decision = admission.decide(locked.balance, dataset_id, charge, caller_id)
    preview, pinned = decision.preview, decision.pinned
    if pinned is None:
        raise _describe_excess(locked.balance, dataset_id, preview, caller_id)
    body = {
        "events": [to_json(event) for event in charge.events],
        "epsilon": preview.cost_epsilon,
        "delta": preview.cost_delta,
        "charge": pinned.to_json(),
        "plan": commitment.plan,
        "facts": commitment.facts,
    }
    signed = commitments.sign(locked, dataset_id, job_id, body)
    locked.append(RESERVED, dataset_id, signed, job_id, job="placed", epsilon_after=preview.epsilon_after)
    assert locked.balance.holds(dataset_id), "a reservation went beyond its limit"
    return preview


def check_terms(context: LedgerContext, tx: WriteSession, job_id: str, terms: Terms) -> None:
    """Compare a job with its reservation; do nothing if it has ended.

    Raises:
        StateConflict: the account is frozen, or the job differs from its reservation.
    """
    row = _row(tx, job_id)
    if row.state in {RESERVED, OPENED}:
        _lock_checked(context, tx, row, terms)


def open_reservation(
    context: LedgerContext, tx: WriteSession, job_id: str, planned: Sequence[PrivacyEvent], terms: Terms
) -> None:
    """Mark a reservation as opened: from now on nothing is refunded. Does nothing if it is opened already.

    ``planned`` and ``terms`` describe the run; they are compared with the reservation. A database that is behind its
    mark opens nothing, because a reconciliation could mistake the charge for a lost one.

    Raises:
        DependencyUnavailable: the database is behind its mark, or the mark cannot be reached.
        StateConflict: the account is frozen, the job has ended, or it differs from its reservation.
    """
    row = _row(tx, job_id)
    locked, body = _lock_checked(context, tx, row, terms)
    if tuple(planned) != _events(body):
        locked_account.freeze_durably(tx, locked.account, row.dataset_id)
        raise StateConflict("The run's plan differs from the reserved plan.")
    if row.state == RESERVED:
        context.check_mark(tx)
        _advance(locked, row, OPENED, {"charge": body["charge"]})


def settle(
    context: LedgerContext,
    tx: WriteSession,
    job_id: str,
    executed: tuple[PrivacyEvent, ...],
    terms: Terms | None = None,
) -> None:
    """End an opened job, once; the whole reservation stays charged.

    A failed run (``executed`` empty) must be able to end. If its account does not verify, the job stays opened, that is
    charged, and the account is frozen. A run with a release states its ``terms``, which must equal the reserved terms.

    Raises:
        StateConflict: the job is not open or differs from its reservation, more was executed than reserved, or a
            release would be from a frozen account.
    """
    row = _row(tx, job_id)
    locked = locked_account.lock_verified(context, tx, row.dataset_id)
    tx.refresh(row)
    if executed and (locked is None or locked.balance.frozen):
        raise StateConflict(locked_account.FROZEN_DETAIL)
    if row.state != OPENED:
        raise StateConflict("Only an opened job can be settled, and only once.")
    if locked is None:
        return
    body = commitments.check(locked, row, terms) if executed else _reserved_body(locked, row)
    if not _is_prefix(executed, _events(body)):
        locked_account.freeze_durably(tx, locked.account, row.dataset_id)
        raise StateConflict("More was executed than was reserved.")
    _advance(locked, row, SETTLED, {"executed": [to_json(event) for event in executed]})


def void(context: LedgerContext, tx: WriteSession, job_id: str) -> None:
    """End a reservation that was never opened, at no cost. Does nothing if it is voided already.

    Raises:
        StateConflict: it was opened.
    """
    row = _row(tx, job_id)
    locked = locked_account.lock_verified(context, tx, row.dataset_id)
    tx.refresh(row)
    if row.state not in {RESERVED, VOIDED}:
        raise StateConflict("The data was opened for this job, so its charge stays.")
    if locked is not None and row.state == RESERVED:
        _advance(locked, row, VOIDED, {"charge": _reserved_body(locked, row)["charge"]})


def find_state(session: ReadSession, job_id: str) -> str:
    """``reserved``, ``opened``, ``settled`` or ``voided``.

    Raises:
        NotFound: the job never had a reservation.
    """
    return _row(session, job_id).state


def is_opened(context: LedgerContext, session: ReadSession, job_id: str, terms: Terms) -> bool:
    """Whether the job is opened and has its reserved terms; changes nothing."""
    row = session.get(Reservation, job_id, populate_existing=True)
    return row is not None and row.state == OPENED and commitments.has_terms(context, session, job_id, terms)


def is_reserved(session: ReadSession, job_id: str) -> bool:
    """Whether the job has or had a reservation."""
    return session.get(Reservation, job_id) is not None


def lock_reserved(tx: WriteSession, job_id: str) -> None:
    """Lock the account of the job's reservation, if any, until the transaction ends."""
    row = tx.get(Reservation, job_id)
    if row is not None:
        locked_account.lock_account_of(tx, row.dataset_id)


def has_settled(session: ReadSession, job_id: str) -> bool:
    """Whether the job's settled charge is in its account's chain, unaltered."""
    return certificate_checks.find_settled(session, job_id) is not None


def _row(session: ReadSession, job_id: str) -> Reservation:
    row = session.get(Reservation, job_id, populate_existing=True)
    if row is None:
        raise NotFound
    return row


def _advance(locked: LockedAccount, row: Reservation, kind: str, body: Mapping[str, Any]) -> None:
    locked.append(kind, row.dataset_id, body, row.job_id, job="moved")
    set_committed_value(row, "state", kind)
    set_committed_value(row, "sequence", locked.account.sequence)


def _lock_checked(
    context: LedgerContext, tx: WriteSession, row: Reservation, terms: Terms
) -> tuple[LockedAccount, Mapping[str, Any]]:
    """Lock the account of a live reservation and check the terms; return it and the reservation's body."""
    locked = locked_account.lock_active(context, tx, row.dataset_id)
    tx.refresh(row)
    if row.state not in {RESERVED, OPENED}:
        raise StateConflict("The job's reservation has ended.")
    if terms.dataset_id != row.dataset_id:
        locked_account.freeze_durably(tx, locked.account, row.dataset_id)
        raise StateConflict(commitments.ALTERED)
    return locked, commitments.check(locked, row, terms)


def _reserved_body(locked: LockedAccount, row: Reservation) -> Mapping[str, Any]:
    """The body of the reservation in the chain; a contradicting row freezes the account."""
    return locked_account.find_reserved_entry(locked, row.job_id, row.state, row.dataset_id).body


def _events(body: Mapping[str, Any]) -> tuple[PrivacyEvent, ...]:
    return tuple(from_json(event) for event in body["events"])


def _is_prefix(executed: Sequence[PrivacyEvent], reserved: Sequence[PrivacyEvent]) -> bool:
    """Whether ``executed`` is a prefix of ``reserved``."""
    ran, planned = merge(flatten(executed)), merge(flatten(reserved))
    if len(ran) > len(planned):
        return False
    if not ran:
        return True
    (event, count), (planned_event, planned_count) = ran[-1], planned[len(ran) - 1]
    return ran[:-1] == planned[: len(ran) - 1] and event == planned_event and count <= planned_count


def _describe_excess(balance: Balance, dataset_id: str, preview: Preview, caller_id: str | None) -> BudgetExceeded:
    delta, limit = balance.total.delta, balance.limit(dataset_id)
    allocation = balance.datasets[dataset_id].allocations.get(caller_id or "")
    if allocation is not None:
        limit = min(limit, allocation.epsilon)
    return BudgetExceeded(
        reason=preview.obstacle,
        requested={"epsilon": preview.cost_epsilon, "delta": delta},
        epsilon_after=preview.epsilon_after,
        limit={"epsilon": limit, "delta": delta},
        remaining={"epsilon": admission.find_largest_gaussian(balance, dataset_id, caller_id), "delta": delta},
    )
