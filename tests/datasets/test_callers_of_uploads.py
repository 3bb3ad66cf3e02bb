"""Callers that may not upload: keys that ended before or during a body, and other owners."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from app.auth.models import ApiKey
from app.datasets.uploads import parts
from app.db import now
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import CSV, declared, everything, problem, stored
from tests.factories.uploads import TABLE, Address, refused, send, sent


def end_key(services: Services, key: rows.Key, ending: str) -> None:
    with services.database.write() as tx:
        setattr(tx.get_one(ApiKey, key.id), ending, now())


def put(client: httpx.Client, key: rows.Key, dataset_id: str) -> httpx.Response:
    return client.put(f"/v1/datasets/{dataset_id}/content", content=TABLE, headers=key.headers | CSV)


@pytest.mark.parametrize("ending", ["revoked_at", "expires_at"])
def test_an_ended_key_changes_nothing(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address], ending: str
) -> None:
    address = begun()
    sent(client, owner, address, b"abc")
    end_key(services, owner, ending)
    before = everything(services.database, services.areas)
    begin = client.post(address.rpartition("/")[0], json={"media_type": "text/csv"}, headers=owner.headers)
    for answer in (put(client, owner, address.split("/")[3]), begin):
        problem(answer, 401, "unauthenticated")
    refused(client, owner, address, 3, 401, "unauthenticated")
    assert everything(services.database, services.areas) == before


@pytest.mark.parametrize("ending", ["revoked_at", "expires_at"])
@pytest.mark.parametrize("resumable", [False, True], ids=["whole", "part"])
def test_a_body_whose_key_ends_during_it_is_not_stored(
    client: httpx.Client,
    services: Services,
    owner: rows.Key,
    begun: Callable[..., Address],
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
    resumable: bool,
) -> None:
    """A leaked key is revoked while a thief uses it."""
    address = begun()
    sent(client, owner, address, b"abc")
    before = stored(services.areas)
    publish = parts.Part.publish

    def end_then_publish(part: parts.Part, writer: Any) -> int:
        end_key(services, owner, ending)
        return publish(part, writer)

    monkeypatch.setattr(parts.Part, "publish", end_then_publish)
    answer = send(client, owner, address, 3) if resumable else put(client, owner, address.split("/")[3])
    problem(answer, 401, "unauthenticated")
    assert stored(services.areas) == before
    tables, _ = everything(services.database, services.areas)
    assert (len(tables["uploads"]), len(tables["upload_parts"]), tables["contents"]) == (1, 1, [])


def test_ids_of_another_owner_are_not_found_in_any_position(
    client: httpx.Client, services: Services, owner: rows.Key, begun: Callable[..., Address]
) -> None:
    address = begun()
    sent(client, owner, address, b"abc")
    dataset_id, upload_id = address.split("/")[3], address.rpartition("/")[2]
    with services.database.write() as tx:
        stranger = rows.api_key(tx)
    own = declared(client, stranger)["id"]
    begun_by_stranger = client.post(
        f"/v1/datasets/{own}/uploads", json={"media_type": "text/csv"}, headers=stranger.headers
    ).headers["location"]
    before = everything(services.database, services.areas)
    problem(put(client, stranger, dataset_id), 404, "not_found")
    problem(
        client.post(f"/v1/datasets/{dataset_id}/uploads", json={"media_type": "text/csv"}, headers=stranger.headers),
        404,
        "not_found",
    )
    foreign = begun_by_stranger.rpartition("/")[2]
    for named in (
        address,
        f"/v1/datasets/{own}/uploads/{upload_id}",
        f"/v1/datasets/{dataset_id}/uploads/{foreign}",
        f"/v1/datasets/{upload_id}/uploads/{dataset_id}",
    ):
        refused(client, stranger, named, 3, 404, "not_found")
    assert everything(services.database, services.areas) == before
