"""Deleting a dataset: its data key is destroyed, its ledger stays, and the owner gets that in writing."""

from contextlib import suppress
from typing import Any

from app.auth.caller import Caller
from app.datasets import access, repository
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository as uploads
from app.db import WriteSession, now
from app.errors import DependencyUnavailable, Internal
from app.services import Services

KIND = "corevault.dataset_deletion"
BACKUP_HORIZON_DAYS = 0
BACKUPS = (
    "The service makes no backups, so its own horizon is 0 days. Copies that the operator made of database and store "
    "before this moment are outside of this receipt; they hold sealed bytes until the operator expires them."
)


def delete(tx: WriteSession, services: Services, caller: Caller, dataset_id: str) -> dict[str, Any]:
    """The signed receipt; a second call changes nothing and returns the same one.

    Raises:
        Forbidden, NotFound: as :func:`app.datasets.access.owned`.
    """
    access.owned(tx, caller, dataset_id)
    dataset = repository.lock(tx, dataset_id)
    if dataset is None:
        raise Internal
    if dataset.deletion_receipt is not None:
        return dataset.deletion_receipt
    contents = repository.contents(tx, dataset_id)
    services.on_dataset_deleted(tx, dataset_id)
    repository.destroy_key(tx, dataset_id)
    for content in contents:
        content.wrapped_key = None
    dataset.deleted_at = dataset.updated_at = now()
    if dataset.sensitivity == "private":
        services.ledger.dataset_deleted(tx, dataset_id)
    receipt = dataset.deletion_receipt = services.signer.sign(_statement(dataset, contents))
    _destroy_after_commit(tx, services, contents, _end_uploads(tx, dataset_id))
    return receipt


def _statement(dataset: Dataset, contents: list[Content]) -> dict[str, Any]:
    assert dataset.deleted_at is not None
    return {
        "kind": KIND,
        "dataset_id": dataset.id,
        "population": dataset.population,
        "deleted_at": dataset.deleted_at.isoformat().replace("+00:00", "Z"),
        "key_destroyed": True,
        "content_versions": [content.version for content in contents],
        "ledger_kept": dataset.sensitivity == "private",
        "backup_horizon_days": BACKUP_HORIZON_DAYS,
        "backups": BACKUPS,
    }


def _end_uploads(tx: WriteSession, dataset_id: str) -> list[str]:
    """Ends what is under way; the ids of the contents that it was sealed for."""
    open_uploads = uploads.of_dataset(tx, dataset_id)
    for upload in open_uploads:
        upload.status = "ended"
    return [upload.content_id for upload in open_uploads]


def _destroy_after_commit(tx: WriteSession, services: Services, contents: list[Content], ended: list[str]) -> None:
    """Objects, and what is left of the keys in the database's log. What cannot be done now, the sweep does.

    The objects' names stay in the rows for that.
    """
    parts = uploads.objects(tx, [content.id for content in contents] + ended)
    tables = [content.table_object for content in contents if content.table_object is not None]
    kept = (part.object_name for part in parts if part.number is not None)  # one that arrives is given up by itself
    objects = [*kept, *tables]

    def destroy() -> None:
        with suppress(DependencyUnavailable):
            for name in objects:
                services.store.delete(name)
        services.database.forget()

    tx.after_commit(destroy)
