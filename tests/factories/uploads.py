"""Resumable uploads over HTTP."""

from typing import Any

import httpx

from app.datasets.disposal import Disposal
from app.datasets.uploads.models import Upload, UploadPart
from app.services import Services
from app.vault.areas import WorkerAreas
from tests.factories.datasets import problem, stored
from tests.factories.rows import Key

Address = str
TABLE = b"age,hours,sex,income_gt_50k\n" + b"20,40,Male,1\n" * 50


def send(
    client: httpx.Client, key: Key, address: Address, offset: int | str, body: Any = TABLE, **headers: str
) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.patch(address, content=body, headers=key.headers | {"Upload-Offset": str(offset)} | named)


def offset_of(client: httpx.Client, key: Key, address: Address) -> int:
    answer = client.head(address, headers=key.headers)
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["cache-control"] == "no-store"
    return int(answer.headers["upload-offset"])


def sent(client: httpx.Client, key: Key, address: Address, *bodies: bytes) -> int:
    """Send the parts; return the offset after them."""
    offset = offset_of(client, key, address)
    for body in bodies:
        answer = send(client, key, address, offset, body)
        assert (answer.status_code, answer.content) == (204, b""), answer.text
        offset += len(body)
        assert answer.headers["upload-offset"] == str(offset)
    return offset


def complete(client: httpx.Client, key: Key, address: Address, **headers: str) -> httpx.Response:
    return client.post(f"{address}/complete", headers=key.headers | headers)


def refused(client: httpx.Client, key: Key, address: Address, offset: int, status: int, code: str) -> None:
    """Check that each call of ``key`` on the upload is refused.

    One of the calls sends a part at ``offset``.
    """
    for answer in (
        client.get(address, headers=key.headers),
        send(client, key, address, offset),
        complete(client, key, address),
        client.delete(address, headers=key.headers),
    ):
        problem(answer, status, code)


def sweep(services: Services) -> None:
    areas = services.areas
    vault = areas.incoming  # it is not used
    Disposal(WorkerAreas(areas.incoming, areas.released, areas.keys, vault)).end_lapsed(services.database)


def change(services: Services, **values: Any) -> None:
    with services.database.write() as tx:
        upload = tx.query(Upload).one()
        for name, value in values.items():
            setattr(upload, name, value)


def left(services: Services) -> tuple[list[str], list[str], list[str]]:
    """Return the existing uploads, parts and objects."""
    with services.database.read() as session:
        uploads = [upload.id for upload in session.query(Upload)]
        return uploads, [part.object_name for part in session.query(UploadPart)], stored(services.areas)
