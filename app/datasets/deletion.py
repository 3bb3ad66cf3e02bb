"""Deleting a dataset: its data key is destroyed, its ledger stays, and the owner gets a signed receipt.

1. The dataset is marked as deleted, and its jobs end.
2. The dataset's key and the keys of its uploads are destroyed. They are stored outside of the database.
3. The receipt is signed.

After a crash, a repeated call or the sweeper continues with the step that is not done.
"""

from contextlib import suppress
from typing import Any

from app.audit.journal import record
from app.auth.caller import Caller
from app.datasets import access, repository
from app.datasets.models import Content, Dataset
from app.datasets.uploads import repository as uploads
from app.db import WriteSession, now
from app.errors import DependencyUnavailable, Internal
from app.services import Services

KIND = "corevault.dataset_deletion"
BACKUPS = (
    "The data key and the keys of uploads were stored in a separate area, which backups of database, vault and uploads "
    "do not include. Therefore no such backup can be decrypted any more, regardless of its age. The operator has "
    "configured that copies of the key area are kept for at most backup_horizon_days. Until then the operator could "
    "still decrypt the data with these copies."
)


def delete(services: Services, caller: Caller, dataset_id: str) -> dict[str, Any]:
    """Delete the dataset and return the signed receipt; a second call returns the same receipt.

    Raises:
        Forbidden, NotFound: as :func:`app.datasets.access.find_owned`.
        DependencyUnavailable: the dataset is deleted, but the key area could not be reached; call again.
    """
    with services.database.write() as tx:
        dataset = _lock(tx, caller, dataset_id)
        record(tx)
        if dataset.deletion_receipt is not None:
            return dataset.deletion_receipt
        if dataset.deleted_at is None:
            _mark_deleted(tx, services, dataset)
        parts = [part.object_name for part in uploads.list_dataset_objects(tx, dataset_id)]
    services.areas.keys.destroy(dataset_id)
    for name in parts:
        services.areas.keys.destroy_part(name)
    services.database.forget()
    with services.database.write() as tx:
        return _sign_receipt(tx, services, _lock(tx, caller, dataset_id))


def _lock(tx: WriteSession, caller: Caller, dataset_id: str) -> Dataset:
    access.find_owned(tx, caller, dataset_id)
    dataset = repository.lock(tx, dataset_id)
    if dataset is None:
        raise Internal
    return dataset


def _mark_deleted(tx: WriteSession, services: Services, dataset: Dataset) -> None:
    """Mark the dataset as deleted, so that nothing reads it any more.

    The names of its objects stay in the database until the objects are destroyed.
    """
    services.on_dataset_deleted(tx, dataset.id)
    contents = repository.list_contents(tx, dataset.id)
    for content in contents:
        content.wrapped_key = None
    dataset.deleted_at = dataset.updated_at = now()
    if dataset.sensitivity == "private":
        services.ledger.dataset_deleted(tx, dataset.id)
    for upload in uploads.list_dataset_uploads(tx, dataset.id):
        upload.status = "ended"
    parts = uploads.list_dataset_objects(tx, dataset.id)
    names = [part.object_name for part in parts if part.number is not None]  # a part that arrives is dropped there
    tx.after_commit(lambda: _delete_parts(services, names))


def _delete_parts(services: Services, parts: list[str]) -> None:
    """Delete the sealed parts that the API can reach; the sweeper deletes the rest, also after a failure here."""
    with suppress(DependencyUnavailable):
        for name in parts:
            services.areas.incoming.delete(name)


def _sign_receipt(tx: WriteSession, services: Services, dataset: Dataset) -> dict[str, Any]:
    if dataset.deletion_receipt is None:
        contents = repository.list_contents(tx, dataset.id)
        dataset.deletion_receipt = services.signer.sign(
            _make_statement(dataset, contents, services.limits.key_backup_days)
        )
    return dataset.deletion_receipt


def _make_statement(dataset: Dataset, contents: list[Content], key_backup_days: int) -> dict[str, Any]:
    assert dataset.deleted_at is not None
    return {
        "kind": KIND,
        "dataset_id": dataset.id,
        "population": dataset.population,
        "deleted_at": dataset.deleted_at.isoformat().replace("+00:00", "Z"),
        "key_destroyed": True,
        "content_versions": [content.version for content in contents],
        "ledger_kept": dataset.sensitivity == "private",
        **({} if dataset.series is None else {"register_kept": True}),
        "backup_horizon_days": key_backup_days,
        "backups": BACKUPS,
    }
