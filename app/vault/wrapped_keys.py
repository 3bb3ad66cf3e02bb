"""The keys of datasets, each in a box that only the worker opens, where no backup of the database or of the vault is.

Whoever destroys such a box has destroyed all that its dataset ever held, in every copy of database and vault.
"""

import hashlib

from app.vault.store import ObjectStore


class WrappedKeys:
    """One box a dataset, under a name that follows from the dataset's id."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def keep(self, dataset_id: str, box: bytes) -> None:
        """Make the dataset's box durable, in place of the one that it may have.

        Raises:
            DependencyUnavailable: the store is away.
        """
        with self.store.create(_name(dataset_id)) as target:
            target.write(box)
            target.publish()

    def box(self, dataset_id: str) -> bytes:
        """The dataset's box.

        Raises:
            ObjectMissing: it was destroyed, or never made.
            DependencyUnavailable: the store is away.
        """
        with self.store.open(_name(dataset_id)) as file:
            return file.read()

    def destroy(self, dataset_id: str) -> None:
        """Nothing of the dataset opens any more; harmless if the box is gone. Raises DependencyUnavailable."""
        self.store.delete(_name(dataset_id))


def _name(dataset_id: str) -> str:
    return hashlib.sha256(f"dataset key|{dataset_id}".encode()).hexdigest()[:32]
