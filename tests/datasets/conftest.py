"""Fixtures of a dataset and of uploads to it."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

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
