"""After a key rotation, ``rewrap`` seals the keys of datasets to the new key."""

import dataclasses
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select

from app.datasets.models import Dataset
from app.db import Database, now
from app.vault.errors import ObjectMissing
from app.vault.keys import WorkerKeys, load_api_keys, load_worker_keys
from app.vault.rotation import destroy_retired_opening, rotate
from tests.factories import rows
from tests.factories.datasets import declared, uploaded
from tests.factories.worker import House, job_body
from workers.enclave import OpeningKey
from workers.rewrap import rewrap

TABLE = b"age,hours,sex,income_gt_50k\n20,40,Male,1\n30,50,Female,0\n"


def opening(keys: WorkerKeys) -> OpeningKey:
    return OpeningKey(keys.opening_key, keys.opening_retired, keys.fingerprint_key)


def test_table_from_before_a_rotation_is_read_after_it(
    house: House, api: httpx.Client, owner: rows.Key, tmp_path: Path
) -> None:
    folder = tmp_path / "keys"
    dataset_id = declared(api, owner, slots=100)["id"]
    uploaded(api, owner, dataset_id, TABLE)
    house.work()
    rotate(folder, "opening")
    keys = opening(load_worker_keys(folder))
    sealing_key = load_api_keys(folder).sealing_key
    box = house.areas.keys.box(dataset_id)
    assert rewrap(house.database, house.areas.keys, keys, sealing_key).resealed_boxes == 1
    again = rewrap(house.database, house.areas.keys, keys, sealing_key)
    assert (again.resealed_boxes, again.has_pending_uploads) == (0, False)
    assert house.areas.keys.box(dataset_id) != box
    assert destroy_retired_opening(folder, timedelta()) == 1
    after = dataclasses.replace(house, keys=load_worker_keys(folder))
    body = job_body(dataset_id, privacy={"noise_multiplier": 30.0, "sampling_rate": 1.0, "iterations": 2})
    job = api.post("/v1/jobs", json=body, headers=owner.headers).json()
    after.work()
    assert house.read(job["id"]).status == "succeeded"


def test_pending_uploads_are_reported(house: House, api: httpx.Client, owner: rows.Key, tmp_path: Path) -> None:
    """The retired key must exist until a worker has read them."""
    folder = tmp_path / "keys"
    uploaded(api, owner, declared(api, owner, slots=100)["id"], TABLE)
    rotate(folder, "opening")
    keys = load_worker_keys(folder)
    done = rewrap(house.database, house.areas.keys, opening(keys), load_api_keys(folder).sealing_key)
    assert (done.resealed_boxes, done.has_pending_uploads) == (1, True)
    dataclasses.replace(house, keys=keys).work()


def test_rewrap_brings_no_destroyed_key_back(house: House, owner: rows.Key, tmp_path: Path) -> None:
    """W1: neither for a deleted dataset, nor for one that a restored database still lists."""
    folder = tmp_path / "keys"
    with house.database.write() as tx:
        deleted = rows.dataset(tx, owner.id, deleted_at=now()).id
        rows.dataset(tx, owner.id)
    house.areas.keys.keep(deleted, b"left by a deletion that was cut short")
    rotate(folder, "opening")
    keys = opening(load_worker_keys(folder))
    assert rewrap(house.database, house.areas.keys, keys, load_api_keys(folder).sealing_key).resealed_boxes == 0
    assert house.areas.keys.box(deleted) == b"left by a deletion that was cut short"


def test_restored_database_opens_no_table_of_a_deleted_dataset(
    house: House, api: httpx.Client, owner: rows.Key, database: Database
) -> None:
    """W1, W9: its jobs end as if the dataset were deleted, and no job is charged."""
    dataset_id = declared(api, owner, slots=100)["id"]
    uploaded(api, owner, dataset_id, TABLE)
    house.work()
    api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers)
    with pytest.raises(ObjectMissing):
        house.areas.keys.box(dataset_id)
    restored = house.ready_dataset(owner)  # a row from before the deletion
    house.areas.keys.destroy(restored)
    job_id = house.job(restored, owner)
    house.run(job_id)
    job = house.read(job_id)
    assert (job.status, job.error_code, house.charge(job_id)) == ("failed", "dataset_deleted", "voided")
    with database.read() as session:
        alive = session.scalars(select(Dataset.id).where(Dataset.deleted_at.is_(None))).all()
    assert alive == [restored]
