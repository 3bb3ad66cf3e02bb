"""The audit log's chain: each entry holds the hash of the one before, and heads are signed with the ledger key.

Entries are committed with the changes that they tell of and chained a moment later, in batches, by whichever process
comes first. So no request waits for another one's commit, and a batch costs one signature. Until then (a second,
while an API process runs) an entry is guarded by the table's triggers alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import func, select

from app.audit.models import AuditEntry, AuditHead
from app.db import ReadSession, WriteSession, now
from app.errors import DependencyUnavailable
from app.ledger.account.locked_account import serialise
from app.ledger.context import REPLACED
from app.ledger.integrity.chain import GENESIS
from app.ledger.integrity.encoding import digest, instant
from app.vault.signing import KeyRing, Signer

BATCH: Final = 1_000
NAME: Final = "audit_entries"


def waiting(session: ReadSession) -> bool:
    """Whether there is an entry that has no place in the chain yet."""
    return session.scalar(select(AuditEntry.id).where(AuditEntry.sequence.is_(None)).limit(1)) is not None


def extend(tx: WriteSession, signer: Signer) -> int:
    """Give up to :data:`BATCH` entries their place, and sign the new head; how many there were.

    Raises:
        DependencyUnavailable: the signer's key has retired.
    """
    serialise(tx, NAME)
    unchained = select(AuditEntry).where(AuditEntry.sequence.is_(None)).order_by(AuditEntry.id).limit(BATCH)
    entries: Sequence[AuditEntry] = tx.scalars(unchained.execution_options(populate_existing=True)).all()
    last = tx.scalars(select(AuditHead).order_by(AuditHead.sequence.desc()).limit(1)).one_or_none()
    if last is not None and not signer.ring.knows(last.key_id):
        raise DependencyUnavailable(REPLACED)
    end, previous = (0, GENESIS) if last is None else (last.sequence, last.entry_hash)
    for position, entry in enumerate(entries, end + 1):
        entry.sequence, entry.previous_hash = position, previous
        entry.entry_hash = previous = digest(_statement(entry))
    if entries:
        tx.add(_sign(signer, end + len(entries), previous))
        tx.flush()
    return len(entries)


def newest(session: ReadSession) -> int:
    """The place of the newest signed head; 0 if there is none."""
    return session.scalar(select(func.max(AuditHead.sequence))) or 0


def lock_newest(tx: WriteSession) -> int:
    """As :func:`newest`, and it stays so until ``tx`` ends."""
    serialise(tx, NAME)
    return newest(tx)


def findings(session: ReadSession, ring: KeyRing) -> Iterator[str]:
    """One plain line for everything that does not hold; ``ring`` holds every ledger key that ever signed."""
    heads = {head.sequence: head for head in session.scalars(select(AuditHead).order_by(AuditHead.sequence))}
    yield from (f"audit head {head.sequence}: the signature does not hold" for head in _find_forged(heads, ring))
    expected, previous = 1, GENESIS
    chained = select(AuditEntry).where(AuditEntry.sequence.is_not(None)).order_by(AuditEntry.sequence)
    for entry in session.scalars(chained.execution_options(populate_existing=True, yield_per=1000)):
        if entry.sequence != expected:
            yield f"audit entry {expected}: missing"
        elif entry.previous_hash != previous or entry.entry_hash != digest(_statement(entry)):
            yield f"audit entry {expected}: altered"
        assert entry.sequence is not None
        head = heads.pop(entry.sequence, None)
        if head is not None and head.entry_hash != entry.entry_hash:
            yield f"audit head {entry.sequence}: signs another entry"
        expected, previous = entry.sequence + 1, entry.entry_hash or ""
    yield from (f"audit head {sequence}: its entry is missing" for sequence in heads)
    if expected - 1 > newest(session):
        yield f"audit entry {expected - 1}: no head is signed behind it"


def _find_forged(heads: Mapping[int, AuditHead], ring: KeyRing) -> Iterator[AuditHead]:
    for head in heads.values():
        document = {"statement": _head(head), "signature": head.signature, "key_id": head.key_id}
        if not ring.verify(document, ("audit", head.sequence)):
            yield head


def _sign(signer: Signer, sequence: int, entry_hash: str) -> AuditHead:
    head = AuditHead(sequence=sequence, at=now(), entry_hash=entry_hash)
    signed = signer.sign(_head(head))
    head.signature, head.key_id = signed["signature"], signed["key_id"]
    return head


def _head(head: AuditHead) -> dict[str, Any]:
    return {"log": "audit", "sequence": head.sequence, "at": instant(head.at), "entry_hash": head.entry_hash}


def _statement(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": instant(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "outcome": entry.outcome,
        "status": entry.status,
        "code": entry.code,
        "count": entry.count,
        "request_id": entry.request_id,
        "sequence": entry.sequence,
        "previous_hash": entry.previous_hash,
        **({} if entry.reason is None else {"reason": entry.reason}),  # entries of earlier versions have none
    }
