"""Fixtures of a dataset and of uploads to it."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.datasets.tus import CSV, create
from tests.factories import rows
from tests.factories.datasets import declared
from tests.factories.uploads import Address


@pytest.fixture
def dataset_id(client: httpx.Client, owner: rows.Key) -> str:
    return str(declared(client, owner)["id"])


@pytest.fixture
def begun(client: httpx.Client, owner: rows.Key, dataset_id: str) -> Callable[..., Address]:
    """Return a function that begins an upload and returns its address."""

    def begin(**announced: Any) -> Address:
        answer = client.post(
            f"/v1/datasets/{dataset_id}/uploads", json={"media_type": "text/csv"} | announced, headers=owner.headers
        )
        assert answer.status_code == 201, answer.text
        assert answer.headers["upload-offset"] == "0"
        return answer.headers["location"]

    return begin


@pytest.fixture
def created(client: httpx.Client, owner: rows.Key, dataset_id: str) -> Callable[..., Address]:
    """Create an upload of a CSV file with these headers; its address."""

    def begin(**headers: str) -> Address:
        more = [("Upload-Metadata", CSV), *((name.replace("_", "-"), value) for name, value in headers.items())]
        answer = create(client, owner, dataset_id, *more)
        assert answer.status_code == 201, answer.text
        return answer.headers["location"]

    return begin
