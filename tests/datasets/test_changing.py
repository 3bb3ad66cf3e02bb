"""``PATCH /v1/datasets/{id}`` changes a dataset's editable members."""

from typing import Any

import httpx
import pytest

from app.services import Services
from tests.factories import rows
from tests.factories.datasets import Check, declared, everything, problem


def patch(client: httpx.Client, key: rows.Key, dataset_id: str, **changes: Any) -> httpx.Response:
    return client.patch(f"/v1/datasets/{dataset_id}", json=changes, headers=key.headers)


def test_patch_changes_only_the_given_members(client: httpx.Client, owner: rows.Key, analyst: rows.Key) -> None:
    dataset = declared(client, owner, shared_with=[analyst.id])
    changed = patch(client, owner, dataset["id"], description="two\nlines")
    assert changed.json() == dataset | {"description": "two\nlines"}
    hidden = patch(client, owner, dataset["id"], releases_public=False)
    assert hidden.json() == changed.json() | {"releases_public": False}
    assert patch(client, owner, dataset["id"]).json() == hidden.json()


def test_only_keys_in_the_shares_see_the_dataset(client: httpx.Client, owner: rows.Key, analyst: rows.Key) -> None:
    dataset = declared(client, owner)
    url = f"/v1/datasets/{dataset['id']}"
    for keys, status in (([analyst.id, analyst.id], 200), ([], 404)):
        shown = patch(client, owner, dataset["id"], shared_with=keys).json()
        assert shown["shared_with"] == sorted(set(keys))
        assert client.get(url, headers=analyst.headers).status_code == status


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"population": "others"}, ""),
        ({"allocations": None}, "/allocations"),
        ({"slots": 5}, ""),
        ({"description": None}, "/description"),
        ({"description": "\x00"}, "/description"),
        ({"releases_public": 1}, "/releases_public"),
        ({"shared_with": ["key_01jd0000000000000000000000"], "description": "new"}, "/shared_with/0"),
    ],
)
def test_refused_change_changes_nothing(
    client: httpx.Client, services: Services, owner: rows.Key, changes: dict[str, Any], pointer: str
) -> None:
    dataset = declared(client, owner)
    before = everything(services.database, services.areas)
    faults = problem(patch(client, owner, dataset["id"], **changes), 422, "invalid_request")["errors"]
    assert [fault["pointer"] for fault in faults] == [pointer]
    assert everything(services.database, services.areas) == before


def test_only_its_owner_may_change_a_dataset(client: httpx.Client, only_its_owner_may: Check) -> None:
    only_its_owner_may(lambda key, dataset_id: patch(client, key, dataset_id, description="mine"))
