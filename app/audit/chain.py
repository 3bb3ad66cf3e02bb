"""The audit log's chain: each entry holds the hash of the one before, and heads are signed with the ledger key.

Entries are committed together with the changes that they record. The first process that has time chains them in
batches, normally within a second. So no request waits for another request's commit, and a batch costs one signature.
Until an entry is chained, only the table's triggers protect it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import func, select

from app.audit.models import AuditEntry, AuditHead
from app.db import ReadSession, WriteSession, now
from app.hashchain import End, check_key, format_instant, take_lock
from app.vault.signing import KeyRing, Signer

BATCH: Final = 1_000
NAME: Final = "audit_entries"


def has_waiting(session: ReadSession) -> bool:
    """Whether an entry has no place in the chain yet."""
    return session.scalar(select(AuditEntry.id).where(AuditEntry.sequence.is_(None)).limit(1)) is not None


def extend(tx: WriteSession, signer: Signer) -> int:
    """Append up to :data:`BATCH` entries to the chain and sign the new head; return their number.

    Raises:
        DependencyUnavailable: the signer's key has retired.
    """
    take_lock(tx, NAME)
    unchained = select(AuditEntry).where(AuditEntry.sequence.is_(None)).order_by(AuditEntry.id).limit(BATCH)
    entries: Sequence[AuditEntry] = tx.scalars(unchained.execution_options(populate_existing=True)).all()
    last = tx.scalars(select(AuditHead).order_by(AuditHead.sequence.desc()).limit(1)).one_or_none()
    check_key(signer, last.key_id if last else None)
    end = End(last.sequence, last.entry_hash) if last else End()
    for entry in entries:
        entry.previous_hash, end = end.entry_hash, end.extend(_content(entry))
        entry.sequence, entry.entry_hash = end.sequence, end.entry_hash
    if entries:
        tx.add(_sign(signer, end))
        tx.flush()
    return len(entries)


def find_newest(session: ReadSession) -> int:
    """The sequence number of the newest signed head; 0 if there is none."""
    return session.scalar(select(func.max(AuditHead.sequence))) or 0


def lock_newest(tx: WriteSession) -> int:
    """As :func:`find_newest`; no entry is chained until ``tx`` ends."""
    take_lock(tx, NAME)
    return find_newest(tx)


def find_faults(session: ReadSession, ring: KeyRing) -> Iterator[str]:
    """Yield one line for each fault; ``ring`` contains all present and former ledger keys."""
    heads = {head.sequence: head for head in session.scalars(select(AuditHead).order_by(AuditHead.sequence))}
    yield from (f"audit head {head.sequence}: the signature does not hold" for head in _find_forged(heads, ring))
    end = End()
    chained = select(AuditEntry).where(AuditEntry.sequence.is_not(None)).order_by(AuditEntry.sequence)
    for entry in session.scalars(chained.execution_options(populate_existing=True, yield_per=1000)):
        assert entry.sequence is not None
        if entry.sequence != end.sequence + 1:
            yield f"audit entry {end.sequence + 1}: missing"
        elif not end.is_continued_by(entry.sequence, entry.previous_hash, entry.entry_hash, _content(entry)):
            yield f"audit entry {entry.sequence}: altered"
        head = heads.pop(entry.sequence, None)
        if head is not None and head.entry_hash != entry.entry_hash:
            yield f"audit head {entry.sequence}: signs another entry"
        end = End(entry.sequence, entry.entry_hash or "")
    yield from (f"audit head {sequence}: its entry is missing" for sequence in heads)
    if end.sequence > find_newest(session):
        yield f"audit entry {end.sequence}: no head is signed behind it"


def _find_forged(heads: Mapping[int, AuditHead], ring: KeyRing) -> Iterator[AuditHead]:
    for head in heads.values():
        if not ring.verify_detached(_head(head), (head.signature, head.key_id), ("audit", head.sequence)):
            yield head


def _sign(signer: Signer, end: End) -> AuditHead:
    head = AuditHead(sequence=end.sequence, at=now(), entry_hash=end.entry_hash)
    head.signature, head.key_id = signer.sign_detached(_head(head))
    return head


def _head(head: AuditHead) -> dict[str, Any]:
    return {"log": "audit", "sequence": head.sequence, "at": format_instant(head.at), "entry_hash": head.entry_hash}


def _content(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": format_instant(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "outcome": entry.outcome,
        "status": entry.status,
        "code": entry.code,
        "count": entry.count,
        "request_id": entry.request_id,
        **({} if entry.reason is None else {"reason": entry.reason}),  # entries of earlier versions have none
        **({} if entry.obstacle is None else {"obstacle": entry.obstacle}),
    }
