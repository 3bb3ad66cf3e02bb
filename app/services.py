"""The services that endpoints share. The composition root builds them; a dependency passes them to endpoints."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from app.db import BackgroundWriter, Database, GroupCommit, Write, WriteSession
from app.queue import TaskQueue

if TYPE_CHECKING:
    from app.http.rate_limits.rates import RateLimits
    from app.ledger import Ledger
    from app.oidc import CodeFlow, TokenVerifier
    from app.vault.areas import Areas
    from app.vault.signing import Signer


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public Ed25519 key that signed documents name in ``key_id``; published by ``GET /v1/keys``."""

    key_id: str
    public_key: str  # base64
    use: str  # "ledger" or "release"


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps that endpoints enforce themselves."""

    upload_bytes: int
    slots: int
    part_bytes: int = 1 << 30
    parts: int = 10_000
    open_uploads: int = 16
    key_backup_days: int = 0  # not enforced here; stated in deletion receipts for copies in backups
    datasets: int = 1_000  # of one owner, without deleted ones
    active_jobs: int = 500  # of one caller, waiting or running
    keys: int = 10_000  # active ones, of all callers


@dataclass(frozen=True, slots=True)
class Services:
    """The API's collaborators. They cannot decrypt: only workers have the opening key."""

    database: Database
    ledger: "Ledger"
    areas: "Areas"
    queue: TaskQueue
    signer: "Signer"  # the ledger key: checkpoints and receipts
    sealing_key: bytes  # the worker's public key, pinned
    identity_key: bytes = field(repr=False)  # under which API keys and recorded bodies are hashed
    verification_keys: tuple[VerificationKey, ...]
    limits: Limits
    on_dataset_deleted: Callable[[WriteSession, str], None] = lambda _, __: None
    """Called in the transaction that deletes a dataset; ends its jobs."""
    behind_tls: bool = False
    """Whether a proxy terminates TLS, so that browsers use https although requests arrive over http."""
    tokens: "TokenVerifier | None" = None
    code_flow: "CodeFlow | None" = None
    """How people sign in to the dashboard at the provider; None: only with API keys."""
    rates: "RateLimits | None" = None
    background: BackgroundWriter | None = None
    group_commit: GroupCommit = field(init=False, repr=False)
    """Joins the transactions of simultaneous job submissions."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "group_commit", GroupCommit(self.database, self.ledger.lock_all))

    def soon(self, name: str, write: Write) -> None:
        """Run ``write`` after the request, unless a write of that name is waiting."""
        if self.background is not None:
            self.background.soon(name, write)

    def close(self) -> None:
        """Close connections and stop the background writer."""
        if self.background is not None:
            self.background.close()
        self.database.dispose()


def get_shared_services(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


Shared = Annotated[Services, Depends(get_shared_services)]
