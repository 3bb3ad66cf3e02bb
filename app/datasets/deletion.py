"""Deleting a dataset: its data key is destroyed, its ledger stays, and the owner gets that in writing.

Three steps, each of which a repeated call or the sweep takes up where a crash has left it: the dataset is marked as
deleted and its jobs end; its key and those of its uploads are destroyed, outside of the database; only then is the
receipt signed.
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
    "The data key and those of uploads lay in an area of their own, outside of the backups of database, vault and "
    "uploads: copies of these, whenever made, open no more. Copies of that area itself are kept elsewhere for "
    "backup_horizon_days at most, as the operator has configured; until then the operator could still open what these "
    "held."
)


def delete(services: Services, caller: Caller, dataset_id: str) -> dict[str, Any]:
    """The signed receipt; a second call changes nothing and returns the same one.

    Raises:
        Forbidden, NotFound: as :func:`app.datasets.access.find_owned`.
        DependencyUnavailable: the dataset is deleted, but its key could not be reached yet; call again.
    """
    with services.database.write() as tx:
        dataset = _lock(tx, caller, dataset_id)
        record(tx)
        if dataset.deletion_receipt is not None:
            return dataset.deletion_receipt
        if dataset.deleted_at is None:
            _mark(tx, services, dataset)
        parts = [part.object_name for part in uploads.objects_of(tx, dataset_id)]
    services.areas.keys.destroy(dataset_id)
    for name in parts:
        services.areas.keys.destroy_part(name)
    services.database.forget()
    with services.database.write() as tx:
        return _receipt(tx, services, _lock(tx, caller, dataset_id))


def _lock(tx: WriteSession, caller: Caller, dataset_id: str) -> Dataset:
    access.find_owned(tx, caller, dataset_id)
    dataset = repository.lock(tx, dataset_id)
    if dataset is None:
        raise Internal
    return dataset


def _mark(tx: WriteSession, services: Services, dataset: Dataset) -> None:
    """Nobody reads the dataset from here on; the names of its objects stay for who destroys them."""
    services.on_dataset_deleted(tx, dataset.id)
    contents = repository.contents(tx, dataset.id)
    for content in contents:
        content.wrapped_key = None
    dataset.deleted_at = dataset.updated_at = now()
    if dataset.sensitivity == "private":
        services.ledger.dataset_deleted(tx, dataset.id)
    for upload in uploads.of_dataset(tx, dataset.id):
        upload.status = "ended"
    parts = uploads.objects_of(tx, dataset.id)
    names = [part.object_name for part in parts if part.number is not None]  # one that arrives is given up by itself
    tx.after_commit(lambda: _destroy(services, names))


def _destroy(services: Services, parts: list[str]) -> None:
    """What the API can reach; the sweep destroys the rest, and this too where it fails."""
    with suppress(DependencyUnavailable):
        for name in parts:
            services.areas.incoming.delete(name)


def _receipt(tx: WriteSession, services: Services, dataset: Dataset) -> dict[str, Any]:
    if dataset.deletion_receipt is None:
        contents = repository.contents(tx, dataset.id)
        dataset.deletion_receipt = services.signer.sign(_statement(dataset, contents, services.limits.key_backup_days))
    return dataset.deletion_receipt


def _statement(dataset: Dataset, contents: list[Content], key_backup_days: int) -> dict[str, Any]:
    assert dataset.deleted_at is not None
    return {
        "kind": KIND,
        "dataset_id": dataset.id,
        "population": dataset.population,
        "deleted_at": dataset.deleted_at.isoformat().replace("+00:00", "Z"),
        "key_destroyed": True,
        "content_versions": [content.version for content in contents],
        "ledger_kept": dataset.sensitivity == "private",
        "backup_horizon_days": key_backup_days,
        "backups": BACKUPS,
    }
