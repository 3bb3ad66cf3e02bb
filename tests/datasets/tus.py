"""Requests of a tus client, version 1.0.0 of the protocol."""

import base64

import httpx

from tests.factories import rows
from tests.factories.uploads import Address, send

TUS = {"Tus-Resumable": "1.0.0"}
CSV = "filetype dGV4dC9jc3Y="
PART = "application/offset+octet-stream"


def encode(value: str | bytes) -> str:
    return base64.b64encode(value.encode() if isinstance(value, str) else value).decode()


def create(client: httpx.Client, key: rows.Key, dataset_id: str, *more: tuple[str, str]) -> httpx.Response:
    """Create an upload as a tus client does: by headers, without a body."""
    headers = [*key.headers.items(), *TUS.items(), *more]
    return client.post(f"/v1/datasets/{dataset_id}/uploads", headers=headers)


def send_part(
    client: httpx.Client, key: rows.Key, address: Address, offset: int, body: bytes, **more: str
) -> httpx.Response:
    return send(client, key, address, offset, body, **{"Tus-Resumable": "1.0.0", "Content-Type": PART} | more)
