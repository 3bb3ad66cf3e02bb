"""The state of the ledger in one process: key, high-water mark, verified heads."""

from dataclasses import dataclass, field

from sqlalchemy import select

from app.db import ReadSession
from app.hashchain import check_key
from app.ledger.integrity.high_water_mark import HighWaterMark
from app.ledger.integrity.verified_heads import VerifiedHeads
from app.ledger.models import Checkpoint
from app.vault.signing import Signer


@dataclass(frozen=True, eq=False)
class LedgerContext:
    """The first argument of every function that locks an account or signs.

    Args:
        signer: the ledger key; signs checkpoints, snapshots and reservations.
        max_epsilon: the highest limit of any account.
        mark: the high-water mark; None in tools that only read.
    """

    signer: Signer
    max_epsilon: float
    mark: HighWaterMark | None = None
    verified_heads: VerifiedHeads = field(default_factory=VerifiedHeads, init=False, repr=False)

    def check_key(self, session: ReadSession) -> None:
        """Check that this process's key has not retired: see :func:`app.hashchain.check_key`.

        Raises:
            DependencyUnavailable: the key has retired.
        """
        newest = select(Checkpoint.key_id).order_by(Checkpoint.sequence.desc()).limit(1)
        check_key(self.signer, session.scalar(newest))

    def check_mark(self, session: ReadSession) -> None:
        """See :meth:`app.ledger.integrity.high_water_mark.HighWaterMark.check`; does nothing without a mark."""
        if self.mark is not None:
            self.mark.check(session)
