"""Migration of an installation without areas: keys leave the database, and objects move to their areas."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from app.cli import installation
from app.cli.relocation import sort_into_areas
from app.config import Settings
from app.db import Database, make_engine
from app.db.migrations import downgrade, upgrade
from app.vault.errors import ObjectMissing
from app.vault.local_store import LocalStore
from app.vault.stores import open_store
from app.vault.wrapped_keys import WrappedKeys
from tests.factories import rows

pytestmark = pytest.mark.sqlite


@pytest.fixture
def settings(tmp_path: Path, sqlite_file: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", database_url=f"sqlite:///{sqlite_file}")


@pytest.fixture
def old(settings: Settings) -> LocalStore:
    """The single store of older versions."""
    return LocalStore(settings.data_dir / "storage")


def put(store: LocalStore, content: bytes) -> str:
    with store.create() as target:
        target.write(content)
        return target.publish()


def test_migration_removes_keys_from_the_database_file(settings: Settings, sqlite_file: Path) -> None:
    """Later backups of the database contain no key."""
    installation.create_keys(settings)
    database = Database(make_engine(settings.database_url))
    with database.write() as tx:
        dataset_id = rows.dataset(tx, rows.api_key(tx).id).id
    downgrade(database.engine, "0004")
    box = b"box-of-a-dataset's-key" * 5
    with database.write() as tx:
        tx.execute(sa.text("INSERT INTO dataset_keys VALUES (:id, :box)"), {"id": dataset_id, "box": box})
    with pytest.raises(RuntimeError, match="corevaultd migrate"):
        upgrade(database.engine)
    assert box in sqlite_file.read_bytes() + sqlite_file.with_name(f"{sqlite_file.name}-wal").read_bytes()
    database.dispose()
    installation.migrate(settings)
    assert WrappedKeys(open_store(settings.wrapped_keys_url)).box(dataset_id) == box
    assert not any(box in path.read_bytes() for path in sqlite_file.parent.glob(f"{sqlite_file.name}*"))
    assert not sa.inspect(sa.create_engine(settings.database_url)).has_table("dataset_keys")


def test_migration_moves_objects_to_their_areas_once(settings: Settings, old: LocalStore) -> None:
    upload, table, points = (put(old, word) for word in (b"upload", b"table", b"points"))
    put(old, b"belongs to no row")
    database = Database(make_engine(settings.database_url))
    with database.write() as tx:
        owner = rows.api_key(tx)
        dataset_id = rows.dataset(tx, owner.id).id
        rows.content(tx, dataset_id, original=[upload], table_object=table)
        job_id = rows.job(tx, dataset_id, owner.id).id
        rows.release(tx, dataset_id, job_id, representations={"json": {"object": points}})
    for _ in range(2):
        sort_into_areas(settings, database)
    database.dispose()
    contents = {}
    for url in (settings.incoming_url, settings.vault_url, settings.released_url):
        root = Path(url.removeprefix("file://"))
        contents[root.name] = [path.read_bytes() for path in root.rglob("objects/*/*")]
    assert contents == {"incoming": [b"upload"], "vault": [b"table"], "released": [b"points"]}
    assert not (settings.data_dir / "storage" / "objects").exists()
    with pytest.raises(ObjectMissing):
        old.open(upload)
