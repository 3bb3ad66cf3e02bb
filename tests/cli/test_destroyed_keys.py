"""W1: ``corevaultd keys rewrap --destroy-retired`` destroys no key that is still needed."""

import os
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from app.cli.commands import cli
from app.datasets.facts import digest_facts, make_declared_facts
from app.datasets.models import Content, Dataset
from app.vault.keys import load_worker_keys
from tests.factories import rows
from tests.factories.datasets import declared, uploaded
from tests.factories.uploads import TABLE
from tests.factories.worker import House
from workers.enclave import OpeningKey, make_layout, open_table

pytestmark = pytest.mark.process
DAY_SECONDS = 24 * 3600


def run(*command: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(part) for part in command])


def destroy(*options: str) -> Result:
    return run("keys", "rewrap", "--destroy-retired", *options)


def opening_keys(folder: Path) -> set[str]:
    return {path.name for path in (folder / "keys").glob("opening*.key")}


@pytest.fixture
def installed(house: House, tmp_path: Path, storage_url: str, monkeypatch: pytest.MonkeyPatch) -> House:
    monkeypatch.setenv("COREVAULT_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("COREVAULT_DATABASE_URL", house.database.engine.url.render_as_string(hide_password=False))
    monkeypatch.setenv("COREVAULT_STORAGE_URL", storage_url)
    return house


@pytest.fixture
def rotated(installed: House, api: httpx.Client, owner: rows.Key, tmp_path: Path) -> str:
    """Return the id of a dataset that is older than the opening key."""
    dataset_id = str(declared(api, owner, slots=100)["id"])
    uploaded(api, owner, dataset_id, TABLE)
    installed.work()
    installed.sweeper.sweep()
    assert run("keys", "rotate", "opening").exit_code == 0
    assert len(opening_keys(tmp_path)) == 2
    return dataset_id


def opens(house: House, dataset_id: str, folder: Path) -> bool:
    keys = load_worker_keys(folder / "keys")
    with house.database.read() as session:
        dataset = session.get_one(Dataset, dataset_id)
        facts, digest = make_declared_facts(dataset), digest_facts(dataset)
        content = session.query(Content).filter_by(dataset_id=dataset_id, status="ready").one()
    assert content.table_object is not None
    assert content.wrapped_key is not None
    with open_table(
        house.areas.vault,
        content.table_object,
        opening_key=OpeningKey(keys.opening_key, keys.opening_retired, keys.fingerprint_key),
        dataset_id=dataset_id,
        version=content.version,
        dataset_box=house.areas.keys.box(dataset_id),
        wrapped_key=content.wrapped_key,
        facts_digest=digest,
        layout=make_layout(facts.columns, facts.slots, facts.unit),
    ) as table:
        return bool(table.gather(np.arange(3))["_present"].any())


def grow_old(folder: Path, seconds: float) -> None:
    for path in (folder / "keys").glob("opening-*.key"):
        os.utime(path, (time.time() - seconds,) * 2)


def test_retired_key_is_destroyed_after_a_rewrap(installed: House, rotated: str, tmp_path: Path) -> None:
    grow_old(tmp_path, DAY_SECONDS + 60)
    done = destroy()
    assert (done.exit_code, "1 retired opening keys destroyed" in done.output) == (0, True), done.output
    assert opening_keys(tmp_path) == {"opening.key"}
    assert opens(installed, rotated, tmp_path)


@pytest.mark.parametrize("options", [(), ("--yes",)])
def test_key_that_an_upload_needs_is_not_destroyed(
    installed: House, rotated: str, api: httpx.Client, owner: rows.Key, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """The API was not restarted, so it still seals uploads to the retired key."""
    uploaded(api, owner, rotated, TABLE + b"30,30,Female,0\n")
    grow_old(tmp_path, DAY_SECONDS + 60)
    refused = destroy(*options)
    assert refused.exit_code == 1
    assert len(opening_keys(tmp_path)) == 2
    assert opens(installed, rotated, tmp_path)


def test_recently_retired_key_is_destroyed_only_after_confirmation(
    installed: House, rotated: str, tmp_path: Path
) -> None:
    grow_old(tmp_path, DAY_SECONDS - 60)
    refused = destroy()
    assert (refused.exit_code, "restart" in refused.output) == (1, True), refused.output
    assert len(opening_keys(tmp_path)) == 2
    done = destroy("--yes")
    assert done.exit_code == 0, done.output
    assert opening_keys(tmp_path) == {"opening.key"}
    assert opens(installed, rotated, tmp_path)


def test_rewrap_alone_destroys_no_key(installed: House, rotated: str, tmp_path: Path) -> None:
    grow_old(tmp_path, DAY_SECONDS + 60)
    assert run("keys", "rewrap").exit_code == 0
    assert len(opening_keys(tmp_path)) == 2
