"""Storage areas; each process gets access only to the areas that it needs.

- ``incoming``: sealed uploads. The API writes and deletes; the worker reads and deletes.
- ``released``: representations of releases. The API reads; the worker writes and deletes.
- ``wrapped_keys``: sealed keys of datasets and uploads. The API writes and deletes; the worker also reads.
- ``vault``: encrypted tables and notes of workers. The API has no access; the worker has full access.
"""

from dataclasses import dataclass

from app.vault.store import ObjectStore
from app.vault.stores import open_store
from app.vault.wrapped_keys import WrappedKeys


@dataclass(frozen=True, slots=True)
class Areas:
    """The areas that the API can access."""

    incoming: ObjectStore
    released: ObjectStore
    keys: WrappedKeys

    @classmethod
    def at(cls, incoming: str, released: str, wrapped_keys: str) -> "Areas":
        """Open the areas at these storage URLs.

        Raises:
            VaultError: a URL is not supported.
        """
        return cls(open_store(incoming), open_store(released), WrappedKeys(open_store(wrapped_keys)))


@dataclass(frozen=True, slots=True)
class WorkerAreas(Areas):
    """The areas that a worker can access; they include the tables."""

    vault: ObjectStore

    @classmethod
    def with_vault(cls, areas: Areas, vault: str) -> "WorkerAreas":
        """Add the area at the storage URL ``vault`` to ``areas``.

        Raises:
            VaultError: the URL is not supported.
        """
        return cls(areas.incoming, areas.released, areas.keys, open_store(vault))

    @property
    def all(self) -> tuple[ObjectStore, ...]:
        return self.incoming, self.released, self.keys.store, self.vault
