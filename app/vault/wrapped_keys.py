"""The area of wrapped keys: keys of datasets and uploads, each in a box that only the worker can open.

Backups of other areas do not include this area. When a dataset's box is destroyed, its tables cannot be decrypted any
more, in any copy of database and vault. The same holds for the box of an upload's part and the copies of ``incoming``.
"""

import hashlib

from app.vault.store import ObjectStore


class WrappedKeys:
    """One box for each dataset and for each part of an upload.

    The objects' names are derived from the names of datasets and parts. Every call raises DependencyUnavailable if the
    store cannot be reached.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def keep(self, dataset_id: str, box: bytes) -> None:
        """Store the dataset's box durably; replaces an existing one."""
        self._keep(_of_dataset(dataset_id), box)

    def box(self, dataset_id: str) -> bytes:
        """Return the dataset's box.

        Raises:
            ObjectMissing: the box was destroyed or never stored.
        """
        return self._box(_of_dataset(dataset_id))

    def destroy(self, dataset_id: str) -> None:
        """Destroy the dataset's box, if it exists; its tables cannot be decrypted afterwards."""
        self.store.delete(_of_dataset(dataset_id))

    def keep_part(self, object_name: str, box: bytes) -> None:
        """Store the box of a part durably; call this before the part is stored."""
        self._keep(_of_part(object_name), box)

    def part_box(self, object_name: str) -> bytes:
        """Return the box of a part.

        Raises:
            ObjectMissing: the box was destroyed or never stored.
        """
        return self._box(_of_part(object_name))

    def destroy_part(self, object_name: str) -> None:
        """Destroy the box of a part, if it exists; no copy of the part can be decrypted afterwards."""
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
