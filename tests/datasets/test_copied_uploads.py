"""Copies of sealed uploads can be decrypted only while their keys exist (W1).

This holds even for a holder of the opening key.
"""

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


def copy_uploads(areas: Areas) -> list[bytes]:
    """Copy the area of uploads, as a backup of the bucket does."""
    return [content for content in entries(areas.incoming).values() if content.startswith(b"CVU")]


def decrypt(house: House, copies: list[bytes]) -> list[bytes]:
    """Decrypt the copies as far as the opening key and all existing boxes allow."""
    boxes = list(entries(house.areas.keys.store).values())
    return [plaintext for copy in copies for plaintext in _decrypt_copy(house, copy, boxes)]


def _decrypt_copy(house: House, copy: bytes, boxes: list[bytes]) -> Iterator[bytes]:
    opening_key = OpeningKey(house.keys.opening_key)
    header_boxes = [copy[start : start + BOX_BYTES] for start in range(HEADER_BYTES)]
    with house.database.read() as session:
        parts = session.query(UploadPart).all()
    names = {name_context(part.content_id, number) for part in parts for number in range(2)}
    for context in names:
        for box in (*header_boxes, *boxes):
            try:
                with SealedReader(io.BytesIO(copy), opening_key.upload_key(box, context), context) as file:
                    yield file.read()
            except VaultError:
                continue


@pytest.fixture
def dataset_id(api: httpx.Client, owner: rows.Key) -> str:
    return str(declared(api, owner, slots=100)["id"])


@pytest.fixture
def upload(api: httpx.Client, owner: rows.Key, dataset_id: str) -> str:
    """The address of an open upload of two parts."""
    begun = api.post(f"/v1/datasets/{dataset_id}/uploads", json={"media_type": "text/csv"}, headers=owner.headers)
    sent(api, owner, begun.headers["location"], TABLE[:HALF], TABLE[HALF:])
    return str(begun.headers["location"])


@pytest.fixture
def copies(house: House, upload: str) -> list[bytes]:
    """Copies of both parts of the open upload."""
    copies = copy_uploads(house.areas)
    assert sorted(decrypt(house, copies)) == sorted([TABLE[:HALF], TABLE[HALF:]]), (
        "they can be decrypted while their keys exist"
    )
    return copies


@pytest.mark.parametrize("complete", [False, True])
def test_after_deletion_copies_of_uploads_cannot_be_decrypted(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str, upload: str, copies: list[bytes], complete: bool
) -> None:
    """W1: at once, before any sweep, and even for a holder of the opening key."""
    if complete:
        assert api.post(f"{upload}/complete", headers=owner.headers).status_code == 202
    assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    assert decrypt(house, copies) == []
    assert entries(house.areas.keys.store) == {}


def test_after_ingestion_a_copied_upload_cannot_be_decrypted(
    house: House, api: httpx.Client, owner: rows.Key, upload: str, copies: list[bytes]
) -> None:
    """W1: afterwards only the key of the dataset exists."""
    api.post(f"{upload}/complete", headers=owner.headers)
    house.work()
    with house.database.read() as session:
        parts = session.query(UploadPart).count()
    assert parts == 2
    house.sweeper.sweep()
    assert len(entries(house.areas.keys.store)) == 1, "the key of the dataset"


def test_after_its_end_a_copied_upload_cannot_be_decrypted(
    house: House, api: httpx.Client, owner: rows.Key, upload: str, copies: list[bytes]
) -> None:
    assert api.delete(upload, headers=owner.headers).status_code == 204
    house.sweeper.sweep()
    assert (len(entries(house.areas.keys.store)), stored(house.areas)) == (1, [])


def test_no_receipt_is_signed_before_upload_keys_are_destroyed(
    house: House,
    api: httpx.Client,
    owner: rows.Key,
    dataset_id: str,
    copies: list[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """W1: a second call destroys the keys that the first could not destroy."""

    def away(*_: object) -> None:
        raise DependencyUnavailable

    with monkeypatch.context() as patch:
        patch.setattr(WrappedKeys, "destroy_part", away)
        problem(api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers), 503, "dependency_unavailable")
    assert decrypt(house, copies) != []
    assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    assert decrypt(house, copies) == []


def test_a_part_that_fails_leaves_no_key(
    house: House, api: httpx.Client, owner: rows.Key, upload: str, copies: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """W10: the key was stored before the part failed."""
    before = entries(house.areas.keys.store)

    def full(*_: object) -> None:
        raise DependencyUnavailable

    monkeypatch.setattr("app.vault.writer.UploadWriter.finish", full)
    problem(send(api, owner, upload, len(TABLE), b"more"), 503, "dependency_unavailable")
    assert (entries(house.areas.keys.store), copy_uploads(house.areas)) == (before, copies)


def rewrite_upload(house: House, begin: bytes) -> None:
    """Rewrite the upload with ``begin`` before its chunks; older versions kept the key there."""
    with house.database.read() as session:
        (part,) = session.query(UploadPart).all()
    with house.areas.incoming.open(part.object_name) as file:
        chunks = file.read()[HEADER_BYTES:]
    house.areas.incoming.delete(part.object_name)
    with house.areas.incoming.create(part.object_name) as target:
        target.write((begin or MAGIC_WITH_BOX + house.areas.keys.part_box(part.object_name)) + chunks)
        target.publish()
    house.areas.keys.destroy_part(part.object_name)


def test_an_older_upload_with_its_key_inside_is_ingested(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str
) -> None:
    """An upload that was open while the service was updated to this version."""
    uploaded(api, owner, dataset_id, TABLE)
    rewrite_upload(house, b"")
    house.work()
    assert api.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()["status"] == "ready"
    house.sweeper.sweep()
    assert len(stored(house.areas)) == 1, "the table alone"


def test_an_upload_without_its_key_is_not_ingested(
    house: House, api: httpx.Client, owner: rows.Key, dataset_id: str
) -> None:
    """W10: no object appears in the vault."""
    uploaded(api, owner, dataset_id, TABLE)
    rewrite_upload(house, HEADER)
    with pytest.raises(ObjectMissing):
        house.work()
    assert api.get(f"/v1/datasets/{dataset_id}", headers=owner.headers).json()["content"]["status"] == "received"
    assert entries(house.areas.vault) == {}
