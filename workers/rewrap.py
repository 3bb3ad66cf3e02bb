"""Seals the keys of datasets to the current key: the last step of a key rotation."""

from dataclasses import dataclass

from sqlalchemy import exists, select

from app.datasets import repository
from app.datasets.models import Content, Dataset
from app.datasets.uploads.models import Upload
from app.db import Database
from app.vault.envelope import make_dataset_context, seal_key
from app.vault.errors import ObjectMissing
from app.vault.wrapped_keys import WrappedKeys
from workers.enclave import OpeningKey


@dataclass(frozen=True, slots=True)
class RewrapResult:
    """The result of a rewrap.

    Attributes:
        resealed_boxes: how many boxes were sealed to the current key.
        has_pending_uploads: whether uploads may still need a retired key.
    """

    resealed_boxes: int
    has_pending_uploads: bool


def rewrap(database: Database, keys: WrappedKeys, opening_key: OpeningKey, sealing_key: bytes) -> RewrapResult:
    """Seal every box that needs a retired key to ``sealing_key``; safe to repeat.

    Each box is sealed under the lock of its dataset. Otherwise a key that is being destroyed could come back.

    Raises:
        VaultError: for a box that no key opens.
        DependencyUnavailable: the store of keys is away.
    """
    with database.read() as session:
        alive = session.scalars(select(Dataset.id).where(Dataset.deleted_at.is_(None)).order_by(Dataset.id)).all()
    done = sum(_rewrap(database, keys, opening_key, sealing_key, dataset_id) for dataset_id in alive)
    with database.read() as session:
        received = session.scalar(select(exists().where(Content.status == "received")))
        unfinished = session.scalar(select(exists().where(Upload.status.not_in(("complete", "ended")))))
    return RewrapResult(done, bool(received or unfinished))


def _rewrap(
    database: Database, keys: WrappedKeys, opening_key: OpeningKey, sealing_key: bytes, dataset_id: str
) -> bool:
    with database.write() as tx:
        dataset = repository.lock(tx, dataset_id)
        if dataset is None or dataset.deleted_at is not None:
            return False
        try:
            box = keys.box(dataset_id)
        except ObjectMissing:
            return False  # the database was restored from before the dataset's deletion
        if opening_key.opens_without_retired(box):
            return False
        public = dataset.sensitivity == "public"
        key = opening_key.dataset_key(box, dataset_id, public=public)
        keys.keep(dataset_id, seal_key(key, make_dataset_context(dataset_id, public=public), sealing_key))
        return True
