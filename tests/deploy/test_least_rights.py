"""The API works without the vault, and the worker destroys deleted tables."""

from pathlib import Path

import httpx
import pytest

from app.db import Database
from app.vault.errors import ObjectMissing
from app.vault.local_store import LocalStore
from tests.factories import rows
from tests.factories.datasets import declared, stored, uploaded
from tests.factories.representations import REPRESENTATIONS
from tests.factories.worker import House, job_body, make_house

TABLE = b"age,hours,sex,income_gt_50k\n20,40,Male,1\n30,50,Female,0\n"
CHEAP = {"noise_multiplier": 30.0, "sampling_rate": 1.0, "iterations": 2}


@pytest.fixture
def house(database: Database, tmp_path: Path) -> House:
    return make_house(database, tmp_path, (tmp_path / "storage").as_uri())


def test_an_api_that_cannot_reach_the_vault_does_all_its_work(
    house: House, api: httpx.Client, owner: rows.Key, tmp_path: Path
) -> None:
    """W1: uploads, releases and deletion work. The key is destroyed at once, the table by the next sweep."""
    dataset_id = declared(api, owner, slots=100)["id"]
    uploaded(api, owner, dataset_id, TABLE)
    house.work()
    job_id = api.post("/v1/jobs", json=job_body(dataset_id, privacy=CHEAP), headers=owner.headers).json()["id"]
    house.work()
    release_id = api.get(f"/v1/jobs/{job_id}", headers=owner.headers).json()["release_id"]
    vault, away = tmp_path / "storage" / "vault", tmp_path / "away"
    vault.rename(away)
    vault.write_text("no folder, so every access fails")
    assert api.get("/health/ready").status_code == 200
    uploaded(api, owner, declared(api, owner, slots=100)["id"], TABLE)
    for name in ("json", "csv", "parquet", "npz"):
        assert api.get(f"/v1/releases/{release_id}/points?format={name}").status_code == 200
    assert api.get(f"/v1/releases/{release_id}/belief").status_code == 200
    assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    with pytest.raises(ObjectMissing):
        house.areas.keys.box(dataset_id)
    vault.unlink()
    away.rename(vault)
    assert isinstance(house.areas.vault, LocalStore)
    assert len(list(vault.rglob("objects/*/*"))) == 1
    house.sweeper.sweep()
    assert list(vault.rglob("objects/*/*")) == []
    assert len(stored(house.areas)) == len(REPRESENTATIONS) + 1  # and the upload that waits
