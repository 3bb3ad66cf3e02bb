"""Datasets over HTTP, and evidence that a refused call has changed nothing."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from sqlalchemy import select

from app.datasets.schemas import EXAMPLE_DECLARATION
from app.db import Base, Database
from app.vault.local_store import LocalStore
from app.vault.store import ObjectStore
from tests.factories.rows import Key

CSV = {"Content-Type": "text/csv"}
Check = Callable[[Callable[[Key, str], httpx.Response]], None]
"""Takes a call on a dataset, by key and id, and checks who may make it."""


def declaration(**changes: Any) -> dict[str, Any]:
    """The documented example, shared with nobody, with a population of its own."""
    body: dict[str, Any] = copy.deepcopy(EXAMPLE_DECLARATION) | {"shared_with": []}
    del body["population"]
    return body | changes


def public_declaration(**changes: Any) -> dict[str, Any]:
    return declaration(sensitivity="public", budget=None, **changes)


def declared(client: httpx.Client, owner: Key, **changes: Any) -> dict[str, Any]:
    """A dataset that ``owner`` has declared over HTTP, as the answer shows it."""
    response = client.post("/v1/datasets", json=declaration(**changes), headers=owner.headers)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def uploaded(client: httpx.Client, owner: Key, dataset_id: str, content: bytes = b"age\n1\n") -> dict[str, Any]:
    """The dataset after a CSV content was received."""
    response = client.put(f"/v1/datasets/{dataset_id}/content", content=content, headers=owner.headers | CSV)
    assert response.status_code == 202, response.text
    body: dict[str, Any] = response.json()
    return body


def everything(database: Database, store: ObjectStore) -> tuple[dict[str, list[str]], list[str]]:
    """All rows of all tables, and the names of all files in the store."""
    with database.read() as session:
        tables = {
            name: sorted(repr(tuple(row)) for row in session.execute(select(table)))
            for name, table in sorted(Base.metadata.tables.items())
        }
    return tables, stored(store)


def stored(store: ObjectStore) -> list[str]:
    """The names of all files in the store, published or not."""
    return [path.name for path in files(store)]


def files(store: ObjectStore) -> list[Path]:
    assert isinstance(store, LocalStore)
    return sorted(path for path in Path(httpx.URL(store.url).path).rglob("*") if path.is_file())


def problem(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The problem document of a refusal, of the expected kind."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json"), (
        response.text
    )
    body: dict[str, Any] = response.json()
    assert body["code"] == code
    return body
