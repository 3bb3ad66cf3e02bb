"""A client of the real application, whose worker runs after each request."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from corevault import Client

from app.db import Database, make_engine
from app.main import create_app
from tests.factories import rows
from tests.factories.transport import AppTransport
from tests.factories.worker import House, make_house


class Working(AppTransport):
    """Lets the worker empty its queue after each request, as if it were fast."""

    def __init__(self, house: House) -> None:
        super().__init__(create_app(house.services, metrics=False))
        self._house = house

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        self._house.work()
        return response


@contextmanager
def open_client(migrated_file: Path, folder: Path) -> Iterator[Client]:
    """Open a client of an owner, on a new database below ``folder``."""
    shutil.copy(migrated_file, folder / "corevault.sqlite3")
    database = Database(make_engine(f"sqlite:///{folder / 'corevault.sqlite3'}"))
    house = make_house(database, folder)
    with database.write() as tx:
        secret = rows.api_key(tx, "owner").secret
    transport = Working(house)
    yield Client("http://corevault.test", secret, transport=transport)
    transport.close()
    database.dispose()
