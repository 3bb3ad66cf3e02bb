"""Sealing the keys of datasets anew, to the key that is in use now: what remains to be done after a rotation."""

from dataclasses import dataclass

from sqlalchemy import exists, select

from app.datasets import repository
from app.datasets.models import Content, Dataset
from app.datasets.uploads.models import Upload
from app.db import Database
from app.vault.envelope import dataset_context, seal_key
from app.vault.errors import ObjectMissing
from app.vault.wrapped_keys import WrappedKeys
from workers.enclave import OpeningKey


@dataclass(frozen=True, slots=True)
class Rewrapped:
    """What was done, and whether anything is left that only a retired key opens."""

    sealed_anew: int
    uploads_wait: bool


def rewrap(database: Database, keys: WrappedKeys, opening_key: OpeningKey, sealing_key: bytes) -> Rewrapped:
    """Seal every box anew that a retired key opens; harmless to repeat.

    Each under the lock of its dataset, so that no key that is being destroyed comes back.

    Raises:
        VaultError: for a box that no key opens.
        DependencyUnavailable: the area of keys is away.
    """
    with database.read() as session:
        alive = session.scalars(select(Dataset.id).where(Dataset.deleted_at.is_(None)).order_by(Dataset.id)).all()
    done = sum(_rewrap(database, keys, opening_key, sealing_key, dataset_id) for dataset_id in alive)
    with database.read() as session:
        received = session.scalar(select(exists().where(Content.status == "received")))
        under_way = session.scalar(select(exists().where(Upload.status.not_in(("complete", "ended")))))
    return Rewrapped(done, bool(received or under_way))


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
            return False  # an older database that does not know of a deletion
        if opening_key.opens_without_retired(box):
            return False
        public = dataset.sensitivity == "public"
        key = opening_key.dataset_key(box, dataset_id, public=public)
        keys.keep(dataset_id, seal_key(key, dataset_context(dataset_id, public=public), sealing_key))
        return True
