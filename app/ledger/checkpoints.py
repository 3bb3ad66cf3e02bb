"""The global chain of signed checkpoints over the accounts' heads: no history can be cut short behind one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from app.db import ReadSession, now
from app.ledger import snapshot
from app.ledger.book import Book, serialise
from app.ledger.chain import GENESIS
from app.ledger.encoding import digest, instant
from app.ledger.models import Checkpoint
from app.vault.signing import Signer


@dataclass(frozen=True, slots=True)
class CheckpointRef:
    """What a certificate carries: the checkpoint, and the account's entry that it stands on."""

    sequence: int
    checkpoint_hash: str
    account_sequence: int
    account_head: str


def append(book: Book) -> CheckpointRef:
    """Sign the account's head into the global chain, and snapshot the balance that it stands for."""
    tx, account = book.tx, book.account
    serialise(tx, "ledger_checkpoints")
    last = tx.scalars(select(Checkpoint).order_by(Checkpoint.sequence.desc()).limit(1)).one_or_none()
    row = Checkpoint(
        sequence=last.sequence + 1 if last else 1,
        at=now(),
        account_id=account.id,
        account_sequence=account.sequence,
        account_head=account.head_hash,
        balance_hash=digest(account.balance),
        previous_hash=last.checkpoint_hash if last else GENESIS,
    )
    row.checkpoint_hash = digest(_statement(row))
    signed = book.scribe.signer.sign(_signed(row))
    row.signature, row.key_id = signed["signature"], signed["key_id"]
    tx.add(row)
    snapshot.take(book.scribe.signer, account, row.sequence)
    tx.flush()
    book.checkpoint = row.sequence
    book.remember()
    return CheckpointRef(row.sequence, row.checkpoint_hash, row.account_sequence, row.account_head)


def audit(session: ReadSession, signer: Signer) -> Iterator[tuple[Checkpoint, bool]]:
    """Every checkpoint, oldest first, and whether it holds and follows the one before."""
    sequence, previous = 0, GENESIS
    query = select(Checkpoint).order_by(Checkpoint.sequence)
    for row in session.scalars(query.execution_options(populate_existing=True, yield_per=256)):
        follows = row.sequence == sequence + 1 and row.previous_hash == previous
        signed = {"statement": _signed(row), "signature": row.signature, "key_id": row.key_id}
        yield row, follows and row.checkpoint_hash == digest(_statement(row)) and signer.ring.verify(signed)
        sequence, previous = row.sequence, row.checkpoint_hash


def _signed(row: Checkpoint) -> dict[str, Any]:
    return {"checkpoint_hash": row.checkpoint_hash, "sequence": row.sequence}


def _statement(row: Checkpoint) -> Mapping[str, Any]:
    return {
        "sequence": row.sequence,
        "at": instant(row.at),
        "account_id": row.account_id,
        "account_sequence": row.account_sequence,
        "account_head": row.account_head,
        "balance_hash": row.balance_hash,
        "previous_hash": row.previous_hash,
    }
