"""The ledger: the only writer of the budget."""

from app.ledger import views
from app.ledger.account import allocations, fingerprints, freezing, limits, locked_account, notes, opening
from app.ledger.context import LedgerContext
from app.ledger.entries import transfers
from app.ledger.integrity import checkpoints, reconciliation, verification


class Ledger(LedgerContext):
    """The public operations of the ledger, as methods.

    Each method is the function itself: ``ledger.reserve(tx, ...)`` calls ``transfers.reserve(ledger, tx, ...)``.
    Functions that need neither key nor high-water mark are static.

    Every operation takes part in the caller's transaction and commits nothing. An operation on a dataset without an
    account raises ``NotFound``; an operation that would spend from a frozen account raises ``StateConflict``.
    """

    open_account = opening.open_account
    change_limit = limits.change_limit
    allocate = allocations.allocate
    claim_fingerprint = staticmethod(fingerprints.claim)

    lock = staticmethod(locked_account.lock)
    lock_all = staticmethod(locked_account.lock_all)
    lock_reserved = staticmethod(transfers.lock_reserved)

    reserve = transfers.reserve
    check_terms = transfers.check_terms
    open = transfers.open_reservation
    settle = transfers.settle
    void = transfers.void
    state = staticmethod(transfers.find_state)
    is_reserved = staticmethod(transfers.is_reserved)
    is_opened = transfers.is_opened
    contains_settled = staticmethod(transfers.has_settled)

    record_refusal = staticmethod(notes.record_refusal)
    content_replaced = notes.note_content_replaced
    dataset_deleted = notes.note_dataset_deleted

    freeze = staticmethod(freezing.freeze)
    unfreeze = freezing.unfreeze
    unmarked_freezes = freezing.list_unmarked_freezes
    mark_freeze = freezing.mark_freeze

    checkpoint = checkpoints.checkpoint
    newest_checkpoint = staticmethod(checkpoints.find_newest_checkpoint)
    sign_anew = reconciliation.sign_anew
    reconcile = reconciliation.reconcile
    verify = verification.verify
    verify_and_freeze = verification.verify_and_freeze

    preview = staticmethod(views.preview)
    admits = staticmethod(views.is_admissible)
    limit = staticmethod(views.read_limit)
    budget = staticmethod(views.read_budget)
    entries = staticmethod(views.list_entries)
    guarantee = staticmethod(views.compute_guarantee)
