"""Shared fixtures: a database made by the real migrations, API keys, and the application in this process.

Tests that depend on the database, broker or storage are marked ``backend``. These are the tests whose fixtures use the
fixture ``backend``. No other test may open a database or request the address of a server.
"""

import gc
import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
from fastapi import FastAPI
from xdist.scheduler import LoadFileScheduling

from app.db import Database, make_engine
from app.db.migrations import upgrade
from app.main import create_app
from app.services import Services
from tests.factories import rows, stack
from tests.factories.datasets import Check, declared, everything, problem
from tests.factories.queue import RecordingQueue
from tests.factories.services import make_services
from tests.factories.statements import compiled_once
from tests.factories.transport import AppTransport
from tests.factories.worker import House, make_house

GARBAGE = (700, 20, 100)
"""Thresholds of garbage collection. With Python's own, it took a seventh of the tests' time."""
# The machine may be busy, so no example has a deadline. Other settings are as in Hypothesis's profile.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")
OPENED: list[str] = []
"""SQLite databases that the running test has opened."""
sys.addaudithook(lambda event, arguments: OPENED.append(str(arguments[0])) if event == "sqlite3.connect" else None)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Exclude modules and test items from garbage collection: they live to the end."""
    gc.disable()
    answer = yield
    gc.freeze()
    gc.set_threshold(*GARBAGE)
    gc.enable()
    return answer


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "backend" in getattr(item, "fixturenames", ()):
            item.add_marker("backend")


class SharedScheduling(LoadFileScheduling):  # type: ignore[misc]  # pytest-xdist has no types
    """Keeps files whole, and all end-to-end tests that share an installation together."""

    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        is_shared = file.startswith("tests/e2e/") and not file.endswith("test_canaries.py")
        return "tests/e2e" if is_shared else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SharedScheduling | None:
    return SharedScheduling(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    OPENED.clear()
    with stack.reserved(item.nodeid, depends=_has_any(item, "backend", "services")):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    answer = yield
    if not _has_any(item, "backend", "services", "sqlite"):
        assert not OPENED, f"{item.nodeid} opens {OPENED[0]}: let it use the fixture `database`, or mark it `sqlite`"
    return answer


def _has_any(item: pytest.Item, *markers: str) -> bool:
    return any(item.get_closest_marker(name) is not None for name in markers)


@pytest.fixture(scope="session", autouse=True)
def compiled_statements() -> Iterator[None]:
    """Compile an SQL statement once, not for each test."""
    with compiled_once():
        yield


@pytest.fixture(scope="session")
def backend() -> None:
    """Mark the test as dependent on the backend of the run, see :mod:`tests.factories.stack`."""


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty SQLite database with the real migrations; tests copy it."""
    path = tmp_path_factory.mktemp("template") / "corevault.sqlite3"
    engine = make_engine(f"sqlite:///{path}")
    upgrade(engine)
    engine.dispose()
    return path


@pytest.fixture
def sqlite_file(migrated_file: Path, tmp_path: Path) -> Path:
    """Make a migrated SQLite database for the test, also if other tests use PostgreSQL."""
    path = tmp_path / "corevault.sqlite3"
    shutil.copy(migrated_file, path)
    return path


@pytest.fixture
def database_url(request: pytest.FixtureRequest, backend: None) -> Iterator[str]:
    """Make a migrated database for the test.

    It is on SQLite, or on PostgreSQL with ``make test-services``. A test about SQLite is marked ``sqlite`` and always
    uses SQLite.
    """
    if stack.on_services() and request.node.get_closest_marker("sqlite") is None:
        with stack.migrated_database() as url:
            yield url
    else:
        yield f"sqlite:///{request.getfixturevalue('sqlite_file')}"


@pytest.fixture
def empty_database_url(backend: None, tmp_path: Path) -> Iterator[str]:
    """Make a database without tables."""
    if stack.on_services():
        with stack.fresh_database() as url:
            yield url
    else:
        yield f"sqlite:///{tmp_path / 'empty.sqlite3'}"


@pytest.fixture
def broker_settings(backend: None) -> dict[str, str]:
    """Return settings of a Redis broker, or none for the queue in files."""
    return {"BROKER_URL": stack.fresh_broker()} if stack.on_services() else {}


@pytest.fixture
def storage_url(request: pytest.FixtureRequest, backend: None, tmp_path: Path) -> str:
    """Return a storage URL: a folder or, with ``make test-services``, a prefix of an S3 bucket.

    A test about local files is marked ``files`` and always uses a folder.
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
    """Make a client of the application in this process; ``headers=owner.headers`` authenticates."""
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
    """Return a check that only the dataset's owner may make a call.

    It also checks that a refused call changes nothing.
    """

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


@pytest.fixture(scope="session")
def open_house(
    backend: None, migrated_file: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], AbstractContextManager[House]]:
    """Return a function that opens an installation for several tests.

    It has a new database and new keys.
    """

    @contextmanager
    def open_one() -> Iterator[House]:
        folder = tmp_path_factory.mktemp("house")
        with ExitStack() as opened:
            if stack.on_services():
                url = opened.enter_context(stack.migrated_database())
            else:
                url = f"sqlite:///{shutil.copy(migrated_file, folder)}"
            database = Database(make_engine(url))
            opened.callback(database.dispose)
            yield make_house(database, folder, stack.fresh_storage(folder))

    return open_one


@pytest.fixture
def house(database: Database, tmp_path: Path, storage_url: str) -> House:
    """Make a whole installation in this process: API and worker."""
    return make_house(database, tmp_path, storage_url)


@pytest.fixture
def api(house: House) -> Iterator[httpx.Client]:
    """Make a client of the house's API."""
    with house.client() as client:
        yield client
