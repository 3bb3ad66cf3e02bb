"""What the ledger works with in one process: its key, its mark, and what it has verified before."""

from dataclasses import dataclass, field

from sqlalchemy import select

from app.db import ReadSession
from app.hashchain import check_key
from app.ledger.integrity.high_water_mark import HighWaterMark
from app.ledger.integrity.verified_heads import VerifiedHeads
from app.ledger.models import Checkpoint
from app.vault.signing import Signer


@dataclass(frozen=True, slots=True)
class LedgerContext:
    """Handed to everything that locks an account or signs."""

    signer: Signer
    mark: HighWaterMark | None = None
    """None where nobody keeps one, as in tools that only read."""
    verified_heads: VerifiedHeads = field(default_factory=VerifiedHeads)

    def check_key(self, session: ReadSession) -> None:
        """See to it that this process's key has not retired; whoever holds a newer one has signed with it at once.

        Raises:
            DependencyUnavailable: it has.
        """
        newest = select(Checkpoint.key_id).order_by(Checkpoint.sequence.desc()).limit(1)
        check_key(self.signer, session.scalar(newest))

    def check_mark(self, session: ReadSession) -> None:
        """See :meth:`app.ledger.integrity.high_water_mark.HighWaterMark.check`; nothing where no mark is kept."""
        if self.mark is not None:
            self.mark.check(session)
