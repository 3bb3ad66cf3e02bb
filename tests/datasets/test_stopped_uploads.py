"""Parts that a stopping server gives up while one of its threads still keeps them."""

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


class Held:
    """A thread that is about to publish a part, and goes on when it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered, self._go_on, self._ended = threading.Event(), threading.Event(), threading.Event()
        publish = Part.publish

        def held(part: Part, writer: UploadWriter) -> int:
            self.entered.set()
            assert self._go_on.wait(SETTLE_SECONDS)
            try:
                return publish(part, writer)
            finally:
                self._ended.set()

        monkeypatch.setattr(Part, "publish", held)

    def end(self) -> None:
        self._go_on.set()
        assert self._ended.wait(SETTLE_SECONDS)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    held = Held(monkeypatch)
    yield held
    held._go_on.set()


async def cut_short(application: FastAPI, request: httpx.Request, held: Held) -> int:
    """The status of a request that the server cancels, as it does where its patience has ended."""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(application)) as client:
        sending = asyncio.create_task(client.send(request))
        with ThreadPoolExecutor(1) as pool:
            assert await asyncio.get_running_loop().run_in_executor(pool, held.entered.wait, SETTLE_SECONDS)
        sending.cancel()
        return (await sending).status_code


def test_a_part_that_was_given_up_leaves_no_key(
    client: httpx.Client,
    application: FastAPI,
    services: Services,
    owner: rows.Key,
    dataset_id: str,
    begun: Callable[..., Address],
    held: Held,
) -> None:
    """W10: no thread ends with its request. A key that it made now would outlive the dataset and its receipt."""
    headers = owner.headers | {"Upload-Offset": "0"}
    part = httpx.Request("PATCH", f"http://corevault.test{begun()}", content=b"abc", headers=headers)
    assert asyncio.run(cut_short(application, part, held)) == 503
    held.end()
    assert left(services)[1:] == ([], [])
    assert client.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    assert [box for box in entries(services.areas.keys.store).values() if box] == []
