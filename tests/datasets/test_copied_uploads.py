"""Copies of sealed uploads: with the opening key in hand, they open for as long as their own keys are there (W1)."""

import io
from collections.abc import Iterator

import httpx
import pytest

from app.datasets.uploads.models import UploadPart, name_context
from app.errors import DependencyUnavailable
from app.vault.areas import Areas
from app.vault.envelope import BOX_BYTES, HEADER, HEADER_BYTES, MAGIC_WITH_BOX
from app.vault.errors import ObjectMissing, VaultError
from app.vault.reader import SealedReader
from app.vault.wrapped_keys import WrappedKeys
from tests.factories import rows
from tests.factories.datasets import declared, entries, problem, stored, uploaded
from tests.factories.uploads import TABLE, send, sent
from tests.factories.worker import House
from workers.enclave import OpeningKey

HALF = len(TABLE) // 2


def copied(areas: Areas) -> list[bytes]:
    """A bucket's backup of the area of uploads."""
    return [content for content in entries(areas.incoming).values() if content.startswith(b"CVU")]


def opened(house: House, copies: list[bytes]) -> list[bytes]:
    """What of the copies can be read by whoever holds the opening key and all boxes that there are."""
    boxes = list(entries(house.areas.keys.store).values())
    return [plaintext for copy in copies for plaintext in _opened(house, copy, boxes)]


def _opened(house: House, copy: bytes, boxes: list[bytes]) -> Iterator[bytes]:
    opening_key = OpeningKey(house.keys.opening_key)
    within = [copy[start : start + BOX_BYTES] for start in range(HEADER_BYTES)]
    with house.database.read() as session:
        parts = session.query(UploadPart).all()
    names = {name_context(part.content_id, number) for part in parts for number in range(2)}
    for bound in names:
        for box in (*within, *boxes):
            try:
                with SealedReader(io.BytesIO(copy), opening_key.upload_key(box, bound), bound) as file:
                    yield file.read()
            except VaultError:
                continue


@pytest.fixture
def dataset_id(api: httpx.Client, owner: rows.Key) -> str:
    return str(declared(api, owner, slots=100)["id"])


@pytest.fixture
def upload(api: httpx.Client, owner: rows.Key, dataset_id: str) -> str:
    """The address of an upload of two parts that is under way."""
    begun = api.post(f"/v1/datasets/{dataset_id}/uploads", json={"media_type": "text/csv"}, headers=owner.headers)
    sent(api, owner, begun.headers["location"], TABLE[:HALF], TABLE[HALF:])
    return str(begun.headers["location"])


@pytest.fixture
def copies(house: House, upload: str) -> list[bytes]:
    """Of both parts, made while they waited."""
    copies = copied(house.areas)
    assert sorted(opened(house, copies)) == sorted([TABLE[:HALF], TABLE[HALF:]]), "they open while their keys are there"
    return copies


@pytest.mark.parametrize("complete", [False, True])
def test_after_a_deletion_copies_of_its_uploads_are_noise(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str, upload: str, copies: list[bytes], complete: bool
) -> None:
    """W1: at once, whatever the sweep finds later, and whoever has the opening key."""
    if complete:
        assert api.post(f"{upload}/complete", headers=owner.headers).status_code == 202
    assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    assert opened(house, copies) == []
    assert entries(house.areas.keys.store) == {}


def test_after_its_ingestion_a_copy_of_an_upload_is_noise(
    house: House, api: httpx.Client, owner: rows.Key, upload: str, copies: list[bytes]
) -> None:
    """W1: from then on the dataset's key is the only one."""
    api.post(f"{upload}/complete", headers=owner.headers)
    house.work()
    with house.database.read() as session:
        parts = session.query(UploadPart).count()
    assert parts == 2
    house.sweeper.sweep()
    assert len(entries(house.areas.keys.store)) == 1, "the dataset's"


def test_after_it_was_given_up_a_copy_of_an_upload_is_noise(
    house: House, api: httpx.Client, owner: rows.Key, upload: str, copies: list[bytes]
) -> None:
    assert api.delete(upload, headers=owner.headers).status_code == 204
    house.sweeper.sweep()
    assert (len(entries(house.areas.keys.store)), stored(house.areas)) == (1, [])


def test_no_receipt_is_signed_before_the_keys_of_uploads_are_gone(
    house: House,
    api: httpx.Client,
    owner: rows.Key,
    dataset_id: str,
    copies: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W1: and a second call finishes what the first could not."""

    def away(*_: object) -> None:
        raise DependencyUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(WrappedKeys, "destroy_part", away)
        problem(api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers), 503, "dependency_unavailable")
    assert opened(house, copies) != []
    assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    assert opened(house, copies) == []


def test_a_part_that_is_not_kept_leaves_no_key(
    house: House, api: httpx.Client, owner: rows.Key, upload: str, copies: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: its key was there first."""
    before = entries(house.areas.keys.store)

    def full(*_: object) -> None:
        raise DependencyUnavailable

    monkeypatch.setattr("app.vault.writer.UploadWriter.finish", full)
    problem(send(api, owner, upload, len(TABLE), b"more"), 503, "dependency_unavailable")
    assert (entries(house.areas.keys.store), copied(house.areas)) == (before, copies)


def rewritten(house: House, begin: bytes) -> None:
    """The one upload as it lay in the store before keys lay apart: ``begin`` in front of its chunks."""
    with house.database.read() as session:
        (part,) = session.query(UploadPart).all()
    with house.areas.incoming.open(part.object_name) as file:
        chunks = file.read()[HEADER_BYTES:]
    house.areas.incoming.delete(part.object_name)
    with house.areas.incoming.create(part.object_name) as target:
        target.write((begin or MAGIC_WITH_BOX + house.areas.keys.part_box(part.object_name)) + chunks)
        target.publish()
    house.areas.keys.destroy_part(part.object_name)


def test_an_upload_that_holds_its_own_key_is_still_ingested(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str
) -> None:
    """One that was under way when the service was brought to this version."""
    uploaded(api, owner, dataset_id, TABLE)
    rewritten(house, b"")
    house.work()
    assert api.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()["status"] == "ready"
    house.sweeper.sweep()
    assert len(stored(house.areas)) == 1, "the table alone"


def test_an_upload_whose_key_is_gone_is_not_ingested(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str
) -> None:
    """W10: and leaves nothing in the vault."""
    uploaded(api, owner, dataset_id, TABLE)
    rewritten(house, HEADER)
    with pytest.raises(ObjectMissing):
        house.work()
    assert api.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()["content"]["status"] == "received"
    assert entries(house.areas.vault) == {}
