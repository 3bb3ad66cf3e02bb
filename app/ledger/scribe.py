"""What the ledger works with in one process: its key, its mark, and what it has verified before."""

from dataclasses import dataclass, field

from app.db import ReadSession
from app.ledger.mark import Mark
from app.ledger.memory import Memory
from app.vault.signing import Signer


@dataclass(frozen=True, slots=True)
class Scribe:
    """Handed to everything that locks an account or signs."""

    signer: Signer
    mark: Mark | None = None
    """None where nobody keeps one, as in tools that only read."""
    memory: Memory = field(default_factory=Memory)

    def check_mark(self, session: ReadSession) -> None:
        """See :meth:`app.ledger.mark.Mark.check`; nothing where no mark is kept."""
        if self.mark is not None:
            self.mark.check(session)
