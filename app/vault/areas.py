"""Where which bytes lie, so that every process can be given only what it needs.

=================  =====================================  =====================  =========================
area               what                                   API                    worker
=================  =====================================  =====================  =========================
``incoming``       sealed uploads                         writes, deletes        reads, deletes
``released``       representations of releases            reads                  writes, deletes
``wrapped_keys``   keys of datasets and uploads, boxed    writes, deletes        reads, writes, deletes
``vault``          encrypted tables, notes of workers     nothing                everything
=================  =====================================  =====================  =========================
"""

from dataclasses import dataclass

from app.vault.store import ObjectStore
from app.vault.stores import open_store
from app.vault.wrapped_keys import WrappedKeys


@dataclass(frozen=True, slots=True)
class Areas:
    """What the API reaches."""

    incoming: ObjectStore
    released: ObjectStore
    keys: WrappedKeys

    @classmethod
    def at(cls, incoming: str, released: str, wrapped_keys: str) -> "Areas":
        """The areas at these storage URLs. Raises VaultError for one that is not supported."""
        return cls(open_store(incoming), open_store(released), WrappedKeys(open_store(wrapped_keys)))


@dataclass(frozen=True, slots=True)
class WorkerAreas(Areas):
    """What a worker reaches: also the tables."""

    vault: ObjectStore

    @classmethod
    def with_vault(cls, areas: Areas, vault: str) -> "WorkerAreas":
        """``areas``, and the one at the storage URL ``vault``. Raises VaultError if that is not supported."""
        return cls(areas.incoming, areas.released, areas.keys, open_store(vault))

    @property
    def all(self) -> tuple[ObjectStore, ...]:
        return self.incoming, self.released, self.keys.store, self.vault
