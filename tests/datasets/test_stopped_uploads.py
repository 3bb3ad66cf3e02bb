"""A stopping server gives up a part while a thread still stores it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from fastapi import FastAPI

from app.datasets.uploads.parts import Part
from app.services import Services
from app.vault.writer import UploadWriter
from tests.factories import rows
from tests.factories.datasets import entries
from tests.factories.line import SETTLE_SECONDS
from tests.factories.uploads import Address, left


class HeldThread:
    """A thread that stops before it publishes a part, until :meth:`end` is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self._may_continue, self._ended = threading.Event(), threading.Event(), threading.Event()
        publish = Part.publish

        def held(part: Part, writer: UploadWriter) -> int:
            self.entered.set()
            assert self._may_continue.wait(SETTLE_SECONDS)
            try:
                return publish(part, writer)
            finally:
                self._ended.set()

        monkeypatch.setattr(Part, "publish", held)

    def end(self) -> None:
        self._may_continue.set()
        assert self._ended.wait(SETTLE_SECONDS)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldThread]:
    held = HeldThread(monkeypatch)
    yield held
    held._may_continue.set()


async def send_and_cancel(application: FastAPI, request: httpx.Request, held: HeldThread) -> int:
    """Send a request, and cancel it as a stopping server does; returns the status."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application)) as client:
        sending = asyncio.create_task(client.send(request))
        with ThreadPoolExecutor(1) as pool:
            assert await asyncio.get_running_loop().run_in_executor(pool, held.entered.wait, SETTLE_SECONDS)
        sending.cancel()
        return (await sending).status_code


def test_no_key_of_a_given_up_part_is_stored(
    client: httpx.Client,
    application: FastAPI,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    begun: Callable[..., Address],
    held: HeldThread,
) -> None:
    """W10: the thread outlives its request. A key that it stored now would outlive the dataset and its receipt."""
    headers = owner.headers | {"Upload-Offset": "0"}
    part = httpx.Request("PATCH", f"http://corevault.test{begun()}", content=b"abc", headers=headers)
    assert asyncio.run(send_and_cancel(application, part, held)) == 503
    held.end()
    assert left(services)[1:] == ([], [])
    assert client.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    assert [box for box in entries(services.areas.keys.store).values() if box] == []
