"""The ledger: the only writer of the budget. Every call works in the caller's transaction and commits nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import update

from app.db import ReadSession, WriteSession
from app.errors import NotFound, StateConflict
from app.hashchain import take_lock
from app.ledger import views
from app.ledger.account import allocations as allocating
from app.ledger.account import fingerprints, freezing, limits, locked_account, opening
from app.ledger.account.locked_account import Cause
from app.ledger.context import LedgerContext
from app.ledger.entries import admission, transfers
from app.ledger.entries.admission import Preview
from app.ledger.entries.balance import CONTENT_REPLACED, DATASET_DELETED
from app.ledger.entries.charge import Charge
from app.ledger.entries.commitments import Commitment, Terms
from app.ledger.integrity import checkpoints, reconciliation, verification
from app.ledger.integrity.checkpoints import CheckpointRef
from app.ledger.integrity.high_water_mark import HighWaterMark
from app.ledger.integrity.reconciliation import Reconciled
from app.ledger.models import LedgerDataset
from app.ledger.views import Budget, Guarantee, LedgerEntry
from app.privacy.events import PrivacyEvent
from app.vault.signing import Signer


class Ledger:
    """What the rest of the service sees of the ledger.

    Args:
        signer: the ledger key; signs checkpoints and snapshots.
        max_epsilon: no account ever opens more than this.
        mark: the high-water mark; None keeps none.

    A dataset without an account is ``NotFound``; a frozen account refuses with ``StateConflict``.
    """

    def __init__(self, signer: Signer, max_epsilon: float, mark: HighWaterMark | None = None) -> None:
        self.signer = signer
        self.max_epsilon = max_epsilon
        self._context = LedgerContext(signer, mark)

    def open_account(
        self,
        tx: WriteSession,
        *,
        owner_id: str,
        population: str,
        dataset_id: str,
        unit: Mapping[str, Any],
        slots: int,
        facts: str,
        epsilon: float,
        delta: float,
    ) -> None:
        """See :func:`app.ledger.account.opening.open_account`."""
        opening.open_account(
            tx,
            self._context,
            self.max_epsilon,
            owner_id=owner_id,
            population=population,
            dataset_id=dataset_id,
            unit=unit,
            slots=slots,
            facts=facts,
            epsilon=epsilon,
            delta=delta,
        )

    def change_limit(self, tx: WriteSession, dataset_id: str, epsilon: float, delta: float | None) -> None:
        """See :func:`app.ledger.account.limits.change_limit`."""
        limits.change_limit(tx, self._context, self.max_epsilon, dataset_id, epsilon=epsilon, delta=delta)

    def allocate(self, tx: WriteSession, dataset_id: str, allocations: Mapping[str, float]) -> None:
        """See :func:`app.ledger.account.allocations.allocate`."""
        allocating.allocate(tx, self._context, self.max_epsilon, dataset_id, allocations)

    def lock(self, tx: WriteSession, dataset_id: str) -> None:
        """Hold the account still until the transaction ends, to calibrate against it."""
        locked_account.lock_account_of(tx, dataset_id)

    def lock_all(self, tx: WriteSession, dataset_ids: Sequence[str]) -> None:
        """See :func:`app.ledger.account.locked_account.lock_all`."""
        locked_account.lock_all(tx, dataset_ids)

    def preview(
        self, session: ReadSession, dataset_id: str, charge: Charge, *, caller_id: str | None = None
    ) -> Preview:
        """What the charge costs and leaves behind; reads, changes nothing.

        Raises:
            MethodNotAllowedOnPrivateData, InvalidRequest, Internal: for what has no price.
        """
        balance = locked_account.read_balance(locked_account.read_account(session, dataset_id))
        return admission.decide(balance, dataset_id, charge, caller_id).preview

    def admits(self, session: ReadSession, dataset_id: str, charge: Charge, *, caller_id: str | None = None) -> bool:
        """Whether :meth:`reserve` would take the charge now; quicker than a preview where it would not."""
        balance = locked_account.read_balance(locked_account.read_account(session, dataset_id))
        return admission.admits(balance, dataset_id, charge, caller_id)

    def reserve(
        self,
        tx: WriteSession,
        dataset_id: str,
        job_id: str,
        charge: Charge,
        *,
        commitment: Commitment,
        caller_id: str | None = None,
    ) -> Preview:
        """See :func:`app.ledger.entries.transfers.reserve`."""
        return transfers.reserve(
            tx, self._context, dataset_id, job_id, charge, commitment=commitment, caller_id=caller_id
        )

    def check_terms(self, tx: WriteSession, job_id: str, terms: Terms) -> None:
        """See :func:`app.ledger.entries.transfers.check_terms`."""
        transfers.check_terms(tx, self._context, job_id, terms)

    def open(self, tx: WriteSession, job_id: str, planned: Sequence[PrivacyEvent], terms: Terms) -> None:
        """See :func:`app.ledger.entries.transfers.open_reservation`."""
        transfers.open_reservation(tx, self._context, job_id, planned, terms)

    def settle(
        self, tx: WriteSession, job_id: str, executed: tuple[PrivacyEvent, ...], terms: Terms | None = None
    ) -> None:
        """See :func:`app.ledger.entries.transfers.settle`."""
        transfers.settle(tx, self._context, job_id, executed, terms)

    def void(self, tx: WriteSession, job_id: str) -> None:
        """See :func:`app.ledger.entries.transfers.void`."""
        transfers.void(tx, self._context, job_id)

    def state(self, session: ReadSession, job_id: str) -> str:
        """See :func:`app.ledger.entries.transfers.state`."""
        return transfers.state(session, job_id)

    def is_opened(self, session: ReadSession, job_id: str, terms: Terms) -> bool:
        """See :func:`app.ledger.entries.transfers.is_opened`."""
        return transfers.is_opened(session, self._context, job_id, terms)

    def is_reserved(self, session: ReadSession, job_id: str) -> bool:
        """See :func:`app.ledger.entries.transfers.is_reserved`."""
        return transfers.is_reserved(session, job_id)

    def lock_reserved(self, tx: WriteSession, job_id: str) -> None:
        """See :func:`app.ledger.entries.transfers.lock_reserved`."""
        transfers.lock_reserved(tx, job_id)

    def contains_settled(self, session: ReadSession, job_id: str) -> bool:
        """See :func:`app.ledger.entries.transfers.contains_settled`."""
        return transfers.contains_settled(session, job_id)

    def record_refusal(self, tx: WriteSession, dataset_id: str) -> None:
        """Count a refusal; no balance and no version changes."""
        counted = update(LedgerDataset).where(LedgerDataset.dataset_id == dataset_id)
        if not tx.execute(counted.values(refused=LedgerDataset.refused + 1).returning(LedgerDataset.refused)).first():
            raise NotFound

    def checkpoint(self, tx: WriteSession, dataset_id: str) -> CheckpointRef:
        """Sign the account's head into the global chain: before every unseal and at every publication."""
        return checkpoints.append(locked_account.lock_active(tx, self._context, dataset_id))

    def check_mark(self, session: ReadSession) -> None:
        """See :meth:`app.ledger.integrity.high_water_mark.HighWaterMark.check`; nothing where no mark is kept."""
        self._context.check_mark(session)

    def reconcile(self, tx: WriteSession, *, adopt: bool) -> list[Reconciled]:
        """See :func:`app.ledger.integrity.reconciliation.reconcile`.

        Raises:
            StateConflict: also where no mark is kept.
        """
        if self._context.mark is None:
            raise StateConflict("No mark is kept here.")
        return reconciliation.reconcile(tx, self._context, self._context.mark, adopt=adopt)

    def newest_checkpoint(self, tx: WriteSession) -> int:
        """Its sequence, which is the newest until the transaction ends; 0 if there is none."""
        take_lock(tx, checkpoints.NAME)
        return checkpoints.newest(tx)

    def sign_anew(self, tx: WriteSession) -> None:
        """Sign every account as it stands; see :func:`app.ledger.integrity.reconciliation.sign_anew`."""
        reconciliation.sign_anew(tx, self._context)

    def content_replaced(self, tx: WriteSession, dataset_id: str, version: int) -> None:
        """Note that another content of the same people is in force; the account goes on."""
        self._note(tx, dataset_id, CONTENT_REPLACED, {"version": version})

    def dataset_deleted(self, tx: WriteSession, dataset_id: str) -> None:
        """Note the deletion; the account stays."""
        self._note(tx, dataset_id, DATASET_DELETED, {})

    def freeze(self, tx: WriteSession, dataset_id: str, cause: Cause) -> None:
        """Stop all spending of the account; what was charged stays charged."""
        locked_account.freeze(tx, locked_account.lock_account_of(tx, dataset_id), dataset_id, cause)

    def unfreeze(self, tx: WriteSession, dataset_id: str, reason: str) -> None:
        """See :func:`app.ledger.account.freezing.end`."""
        freezing.end(tx, self._context, dataset_id, reason)

    def unmarked_freezes(self, session: ReadSession) -> list[str]:
        """See :func:`app.ledger.account.freezing.find_unmarked`; none where no mark is kept."""
        mark = self._context.mark
        return [] if mark is None else freezing.find_unmarked(session, mark)

    def mark_freeze(self, tx: WriteSession, account_id: str) -> None:
        """See :func:`app.ledger.account.freezing.carry`; nothing where no mark is kept."""
        if self._context.mark is not None:
            freezing.carry(tx, self._context, self._context.mark, account_id)

    def claim_fingerprint(self, tx: WriteSession, dataset_id: str, fingerprint: str) -> bool:
        """See :func:`app.ledger.account.fingerprints.claim`."""
        return fingerprints.claim(tx, dataset_id, fingerprint)

    def limit(self, session: ReadSession, dataset_id: str) -> tuple[float, float]:
        """The dataset's limit: (epsilon, delta)."""
        return views.limit(session, dataset_id)

    def budget(self, session: ReadSession, dataset_id: str, caller_id: str | None = None) -> Budget:
        """Everything that may be read about the dataset's account; what remains is what remains to the caller."""
        return views.budget(session, dataset_id, caller_id)

    def entries(self, session: ReadSession, dataset_id: str, *, limit: int, before: int | None) -> list[LedgerEntry]:
        """The account's entries, newest first."""
        return views.entries(session, dataset_id, limit=limit, before=before)

    def guarantee(self, session: ReadSession, dataset_id: str) -> Guarantee:
        """What bounds all releases of the account together."""
        return views.guarantee(session, dataset_id)

    def verify(self, session: ReadSession) -> tuple[str, ...]:
        """See :func:`app.ledger.integrity.verification.verify`."""
        return verification.verify(session, self.signer)

    def verify_and_freeze(self, tx: WriteSession) -> tuple[str, ...]:
        """See :func:`app.ledger.integrity.verification.verify_and_freeze`."""
        return verification.verify_and_freeze(tx, self.signer)

    def _note(self, tx: WriteSession, dataset_id: str, kind: str, body: Mapping[str, Any]) -> None:
        locked = locked_account.lock_verified(tx, self._context, dataset_id)
        if locked is not None:
            locked.append(kind, dataset_id, body)
