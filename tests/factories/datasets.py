"""Datasets over HTTP, and snapshots of the whole stored state."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select

from app.datasets.schemas import EXAMPLE_DECLARATION
from app.db import Base, Database
from app.vault.areas import Areas, WorkerAreas
from app.vault.local_store import LocalStore
from app.vault.s3_store import S3Store
from app.vault.store import ObjectStore
from tests.factories.rows import Key

CSV = {"Content-Type": "text/csv"}
Check = Callable[[Callable[[Key, str], httpx.Response]], None]
"""A function that takes a call on a dataset, by key and id, and checks which callers may make it."""


def declaration(**changes: Any) -> dict[str, Any]:
    """Return the documented example without shares and without a named population."""
    body: dict[str, Any] = copy.deepcopy(EXAMPLE_DECLARATION) | {"shared_with": []}
    del body["population"]
    return body | changes


def public_declaration(**changes: Any) -> dict[str, Any]:
    return declaration(sensitivity="public", budget=None, **changes)


def declared(client: httpx.Client, owner: Key, **changes: Any) -> dict[str, Any]:
    """Declare a dataset of ``owner`` over HTTP; return the response body."""
    response = client.post("/v1/datasets", json=declaration(**changes), headers=owner.headers)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def uploaded(client: httpx.Client, owner: Key, dataset_id: str, content: bytes = b"age\n1\n") -> dict[str, Any]:
    """Upload a CSV content; return the dataset."""
    response = client.put(f"/v1/datasets/{dataset_id}/content", content=content, headers=owner.headers | CSV)
    assert response.status_code == 202, response.text
    body: dict[str, Any] = response.json()
    return body


def everything(database: Database, areas: Areas) -> tuple[dict[str, list[str]], list[str]]:
    """Return all rows of all tables, and the names of all objects and keys."""
    with database.read() as session:
        tables = {
            name: sorted(repr(tuple(row)) for row in session.execute(select(table)))
            for name, table in sorted(Base.metadata.tables.items())
        }
    return tables, stored(areas) + sorted(entries(areas.keys.store))


def stored(areas: Areas) -> list[str]:
    """Return the names of all objects in the areas, without keys.

    It includes objects that are not published.
    """
    stores = [areas.incoming, areas.released, *([areas.vault] if isinstance(areas, WorkerAreas) else [])]
    return sorted(path.rpartition("/")[2] for store in stores for path in entries(store))


def entries(store: ObjectStore) -> dict[str, bytes]:
    """Return the contents of all files or keys of a store, by path."""
    if isinstance(store, S3Store):
        return {key: store._keys.read(key) for key, _ in store._keys.below("")}
    assert isinstance(store, LocalStore)
    root = Path(httpx.URL(store.url).path)
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that the response is a refusal of the expected kind; return its problem details."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json"), (
        response.text
    )
    body: dict[str, Any] = response.json()
    assert body["code"] == code
    return body
