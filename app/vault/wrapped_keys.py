"""The keys of datasets and of uploads, each in a box that only the worker opens, where no backup of other areas is.

Whoever destroys a dataset's box has destroyed all that its tables ever held, in every copy of database and vault; and
with the box of each part of an upload that part, in every copy of ``incoming``.
"""

import hashlib

from app.vault.store import ObjectStore


class WrappedKeys:
    """One box a dataset and one a part of an upload, under names that follow from theirs.

    Every call raises DependencyUnavailable where the store is away.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def keep(self, dataset_id: str, box: bytes) -> None:
        """Make the dataset's box durable, in place of the one that it may have."""
        self._keep(_of_dataset(dataset_id), box)

    def box(self, dataset_id: str) -> bytes:
        """The dataset's box. Raises ObjectMissing: it was destroyed, or never made."""
        return self._box(_of_dataset(dataset_id))

    def destroy(self, dataset_id: str) -> None:
        """Nothing of the dataset's tables opens any more; harmless if the box is gone."""
        self.store.delete(_of_dataset(dataset_id))

    def keep_part(self, object_name: str, box: bytes) -> None:
        """Make the box of a part durable, before the part is."""
        self._keep(_of_part(object_name), box)

    def part_box(self, object_name: str) -> bytes:
        """The box of a part. Raises ObjectMissing: it was destroyed, or never made."""
        return self._box(_of_part(object_name))

    def destroy_part(self, object_name: str) -> None:
        """The part opens no more, whoever has a copy; harmless if the box is gone."""
        self.store.delete(_of_part(object_name))

    def _keep(self, name: str, box: bytes) -> None:
        with self.store.create(name) as target:
            target.write(box)
            target.publish()

    def _box(self, name: str) -> bytes:
        with self.store.open(name) as file:
            return file.read()


def _of_dataset(dataset_id: str) -> str:
    return hashlib.sha256(f"dataset key|{dataset_id}".encode()).hexdigest()[:32]


def _of_part(object_name: str) -> str:
    return hashlib.sha256(f"upload key|{object_name}".encode()).hexdigest()[:32]
