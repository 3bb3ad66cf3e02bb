"""The ledger: the only writer of the budget."""

from app.ledger import overviews, views
from app.ledger.account import allocations, fingerprints, freezing, limits, locked_account, notes, opening, registers
from app.ledger.context import LedgerContext
from app.ledger.entries import transfers
from app.ledger.integrity import checkpoints, export, reconciliation, standing, verification


class Ledger(LedgerContext):
    """The public operations of the ledger, as methods.

    Each method is the function that is assigned to it, with the ledger as its context. For example,
    ``ledger.reserve(tx, ...)`` calls ``transfers.reserve(ledger, tx, ...)``. A function that needs neither the ledger's
    key nor its high-water mark has no context, so its method is static.

    Every operation runs in the caller's transaction, and commits nothing. An operation on a dataset without an account
    raises ``NotFound``. An operation that would spend from a frozen account raises ``StateConflict``.
    """

    open_account = opening.open_account
    change_limit = limits.change_limit
    allocate = allocations.allocate
    claim_fingerprint = staticmethod(fingerprints.claim)
    lock_accounts = staticmethod(registers.lock_accounts)
    register_people = registers.register_people
    registration = staticmethod(registers.find_registration)

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
    standings = staticmethod(views.read_standings)
    datasets = staticmethod(views.list_datasets)
    entries = staticmethod(views.list_entries)
    steps = staticmethod(views.list_steps)
    guarantee = staticmethod(views.compute_guarantee)
    exposure = staticmethod(views.read_exposure)
    verify_account = standing.verify_account
    chain = export.read_chain
    accounts = staticmethod(overviews.list_accounts)
    overviews = staticmethod(overviews.list_overviews)
