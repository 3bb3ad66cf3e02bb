"""A backup of PostgreSQL is restored under a running installation, by the how-to."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from app.datasets.facts import digest_facts, make_declared_facts
from app.datasets.models import Content, Dataset
from app.ledger import Budget
from app.vault.errors import VaultError
from app.vault.keys import load_worker_keys
from app.vault.stores import open_store
from support.servers import find_postgres_program
from tests.factories.datasets import entries
from tests.factories.worker import job_body
from tests.faults.real import Real
from tests.faults.test_killed_worker import table
from workers.enclave import OpeningKey, make_layout, open_table

pytestmark = [pytest.mark.services, pytest.mark.timeout(300), pytest.mark.process]
COSTLY = {"noise_multiplier": 60.0, "sampling_rate": 1.0, "iterations": 30}


@dataclass
class Backup:
    """A dump of the database and a copy of the vault.

    It contains neither the keys of datasets nor the high-water mark.
    """

    url: str
    folder: Path

    def take(self, installation: Path) -> None:
        _program("pg_dump", "--format=custom", "--file", self._dump, self._plain)
        shutil.copytree(installation / "storage" / "vault", self.vault)

    def restore(self, installation: Path) -> None:
        """Drop the database, and restore it and the vault."""
        server, name = self._plain.rsplit("/", 1)
        _program("dropdb", "--force", "--maintenance-db", f"{server}/postgres", name)
        _program("createdb", "--maintenance-db", f"{server}/postgres", name)
        _program("pg_restore", "--exit-on-error", "--dbname", self._plain, self._dump)
        shutil.copytree(self.vault, installation / "storage" / "vault", dirs_exist_ok=True)

    @property
    def vault(self) -> Path:
        return self.folder / "vault"

    @property
    def _dump(self) -> str:
        return str(self.folder / "database.dump")

    @property
    def _plain(self) -> str:
        return self.url.replace("+psycopg", "")


def _program(name: str, *arguments: str) -> None:
    done = subprocess.run([str(find_postgres_program(name)), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@dataclass
class Restored:
    """An installation whose database is older than its high-water mark.

    Attributes:
        real: the installation; its processes are stopped.
        backup: the backup.
        remaining: a dataset that still exists.
        deleted: a dataset that was deleted after the backup.
        deleted_box: the box with its key, from before the deletion.
        waiting: a job that was queued at the time of the backup, and has a release since then.
        spent: the budget of the remaining dataset before the restore.
    """

    real: Real
    backup: Backup
    remaining: str
    deleted: str
    deleted_box: bytes
    waiting: str
    spent: Budget


@pytest.fixture
def restored(database_url: str, broker_settings: dict[str, str], tmp_path: Path) -> Iterator[Restored]:
    """Restore a backup, with all processes stopped."""
    backup = Backup(database_url, tmp_path / "backup")
    backup.folder.mkdir()
    (tmp_path / "installation").mkdir()
    with Real(tmp_path / "installation", database_url, broker_settings) as real:
        remaining, deleted = real.ready_dataset(), real.ready_dataset(table(201))
        for dataset_id in (remaining, deleted):
            assert real.wait(real.submit(_job(dataset_id), f"first-{dataset_id}")).status == "succeeded"
        for worker in real.workers:
            worker.signal(signal.SIGSTOP)
        waiting = real.submit(_job(remaining), "waiting")
        backup.take(real.folder)
        for worker in real.workers:
            worker.signal(signal.SIGCONT)
        assert real.wait(waiting).status == "succeeded"
        (box,) = [each for each in _boxes(real) if _opens(real, backup, deleted, each)]
        assert real.call("DELETE", f"/v1/datasets/{deleted}").json()["statement"]["key_destroyed"]
        spent = _budget(real, remaining)
        real.stop()
        backup.restore(real.folder)
        yield Restored(real, backup, remaining, deleted, box, waiting, spent)


def test_restored_backup_refunds_nothing_and_opens_no_deleted_dataset(restored: Restored) -> None:
    """W1, W9, W11: requests are refused until ``reconcile``, which only charges; then service continues."""
    real = restored.real
    real.start_api()
    _check_refusal(restored)
    real.stop()
    assert _budget(real, restored.remaining).spent.epsilon < restored.spent.spent.epsilon
    done = real.command("reconcile")
    assert (done.returncode, done.stdout.count("charged"), "frozen" in done.stdout) == (0, 1, False), done
    _check_charges(restored)
    _check_deleted_dataset(restored)
    real.start_workers()
    _check_service(restored)
    with real.database.read() as session:
        assert real.ledger.verify(session) == ()


def _check_refusal(restored: Restored) -> None:
    real = restored.real
    ready = real.call("GET", "/health/ready")
    assert (ready.status_code, "reconcile" in ready.text) == (503, True), ready.text
    body = _job(restored.remaining)
    for answer in (
        real.call("POST", "/v1/jobs", json=body, headers={"Idempotency-Key": "refused"}),
        real.call("DELETE", f"/v1/datasets/{restored.deleted}"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (503, "dependency_unavailable")
    assert real.call("GET", f"/v1/datasets/{restored.remaining}/budget").status_code == 200, "it can be read"
    checked = real.command("verify")
    assert (checked.returncode, "mark" in checked.stdout) == (1, True), checked
    assert real.read(restored.waiting).status == "queued", "the backup is from before its run"


def _check_charges(restored: Restored) -> None:
    """Check that nothing is refunded.

    The job that waits according to the backup is no exception: cancelling it only ends its new reservation.
    """
    real, spent = restored.real, restored.spent.spent.epsilon
    assert _budget(real, restored.remaining).spent.epsilon >= spent
    real.start_api()
    assert real.call("GET", "/health/ready").status_code == 200
    assert real.call("POST", f"/v1/jobs/{restored.waiting}/cancel").json()["status"] == "cancelled"
    after = _budget(real, restored.remaining)
    assert after.spent.epsilon >= spent
    assert after.reserved.epsilon == 0.0
    assert real.command("reconcile").stdout == "nothing to do\n"


def _check_deleted_dataset(restored: Restored) -> None:
    """Check that no key of the installation opens the deleted dataset.

    The backup has the content's row and the table itself.
    """
    real, backup, deleted = restored.real, restored.backup, restored.deleted
    assert real.call("GET", f"/v1/datasets/{deleted}").json()["status"] == "ready", "the row is back"
    assert _opens(real, backup, deleted, restored.deleted_box), "only the destroyed box is missing"
    boxes = _boxes(real)
    assert boxes
    assert not [box for box in boxes if _opens(real, backup, deleted, box)]


def _check_service(restored: Restored) -> None:
    real = restored.real
    lost = real.wait(real.submit(_job(restored.deleted), "of-the-deleted"))
    assert (lost.status, lost.error_code) == ("failed", "dataset_deleted")
    assert real.call("GET", f"/v1/datasets/{restored.deleted}/budget").json()["jobs"]["settled"] == 1, "uncharged"
    assert real.wait(real.submit(_job(restored.remaining), "again")).status == "succeeded"
    assert _budget(real, restored.remaining).spent.epsilon > restored.spent.spent.epsilon
    assert real.call("DELETE", f"/v1/datasets/{restored.deleted}").status_code == 200


def _job(dataset_id: str) -> dict[str, object]:
    return job_body(dataset_id, privacy=COSTLY)


def _budget(real: Real, dataset_id: str) -> Budget:
    with real.database.read() as session:
        return real.ledger.budget(session, dataset_id)


def _boxes(real: Real) -> list[bytes]:
    """All boxes in the store of keys."""
    return list(entries(open_store((real.folder / "storage" / "wrapped-keys").as_uri())).values())


def _opens(real: Real, backup: Backup, dataset_id: str, box: bytes) -> bool:
    """Whether ``box`` has the key that opens the dataset's table in the backup."""
    with real.database.read() as session:
        dataset = session.get_one(Dataset, dataset_id)
        facts, digest = make_declared_facts(dataset), digest_facts(dataset)
        content = session.query(Content).where(Content.dataset_id == dataset_id).one()
    keys = load_worker_keys(real.folder / "keys")
    assert content.table_object is not None
    assert content.wrapped_key is not None
    try:
        with open_table(
            open_store(backup.vault.as_uri()),
            content.table_object,
            opening_key=OpeningKey(keys.opening_key, keys.opening_retired, keys.fingerprint_key),
            dataset_id=dataset_id,
            version=content.version,
            dataset_box=box,
            wrapped_key=content.wrapped_key,
            facts_digest=digest,
            layout=make_layout(facts.columns, facts.slots, facts.unit),
        ) as table:
            return len(table.gather(np.arange(3))) > 0
    except VaultError:
        return False
