"""Fixtures that every test shares: a database made by the real migrations, keys, and the application in process."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from app.db import Database, make_engine
from app.db.migrations import upgrade
from app.main import create_app
from app.services import Services
from tests.factories import rows, stack
from tests.factories.datasets import Check, declared, everything, problem
from tests.factories.queue import RecordingQueue
from tests.factories.services import make_services
from tests.factories.transport import AppTransport
from tests.factories.worker import House, make_house


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty SQLite database that the real migrations made; tests copy it."""
    path = tmp_path_factory.mktemp("template") / "corevault.sqlite3"
    engine = make_engine(f"sqlite:///{path}")
    upgrade(engine)
    engine.dispose()
    return path


@pytest.fixture
def sqlite_file(migrated_file: Path, tmp_path: Path) -> Path:
    """A migrated SQLite database of the test's own, whatever the others run on."""
    path = tmp_path / "corevault.sqlite3"
    shutil.copy(migrated_file, path)
    return path


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A migrated database of the test's own: on SQLite or, under ``make test-services``, on PostgreSQL.

    A test of SQLite's own ways is marked ``sqlite`` and always runs there.
    """
    if stack.on_services() and request.node.get_closest_marker("sqlite") is None:
        with stack.fresh_database(template=stack.migrated_template()) as url:
            yield url
    else:
        yield f"sqlite:///{request.getfixturevalue('sqlite_file')}"


@pytest.fixture
def storage_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where contents lie: a folder or, under ``make test-services``, a part of an S3 bucket.

    A test of files' own ways is marked ``files`` and always uses a folder.
    """
    if request.node.get_closest_marker("files") is not None:
        return (tmp_path / "storage").as_uri()
    return stack.fresh_storage(tmp_path)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    database = Database(make_engine(database_url))
    yield database
    database.dispose()


@pytest.fixture
def queue() -> RecordingQueue:
    return RecordingQueue()


@pytest.fixture
def admin(database: Database) -> rows.Key:
    with database.write() as tx:
        return rows.api_key(tx, "admin")


@pytest.fixture
def owner(database: Database) -> rows.Key:
    with database.write() as tx:
        return rows.api_key(tx, "owner")


@pytest.fixture
def analyst(database: Database) -> rows.Key:
    with database.write() as tx:
        return rows.api_key(tx, "analyst")


@pytest.fixture
def auditor(database: Database) -> rows.Key:
    with database.write() as tx:
        return rows.api_key(tx, "auditor")


@pytest.fixture
def services(database: Database, queue: RecordingQueue, storage_url: str) -> Services:
    return make_services(database, queue, storage_url)


@pytest.fixture
def application(services: Services) -> FastAPI:
    return create_app(services)


@pytest.fixture
def client(application: FastAPI) -> Iterator[httpx.Client]:
    """Calls the application in this process; send ``headers=owner.headers`` to be someone."""
    with httpx.Client(transport=AppTransport(application), base_url="http://corevault.test") as client:
        yield client


@pytest.fixture
def only_its_owner_may(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    analyst: rows.Key,
    admin: rows.Key,
    auditor: rows.Key,
) -> Check:
    """Checks that a call on a dataset is refused to every key but its owner's, and that trying changes nothing."""

    def check(call: Callable[[rows.Key, str], httpx.Response]) -> None:
        dataset = declared(client, owner, shared_with=[analyst.id])
        with services.database.write() as tx:
            stranger = rows.api_key(tx, "owner")
        before = everything(services.database, services.areas)
        for key in (analyst, admin, auditor):
            problem(call(key, dataset["id"]), 403, "forbidden")
        problem(call(stranger, dataset["id"]), 404, "not_found")
        problem(call(owner, "ds_01jd0000000000000000000000"), 404, "not_found")
        assert everything(services.database, services.areas) == before

    return check


@pytest.fixture
def house(database: Database, tmp_path: Path, storage_url: str) -> House:
    """A whole installation in this process: API and worker."""
    return make_house(database, tmp_path, storage_url)


@pytest.fixture
def api(house: House) -> Iterator[httpx.Client]:
    """Calls the house's API."""
    with house.client() as client:
        yield client
