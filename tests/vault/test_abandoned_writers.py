"""A writer is aborted while another thread uses it; no truncated object appears."""

import secrets
import threading
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.errors import DependencyUnavailable
from app.vault.envelope import CHUNK_BYTES
from app.vault.store import ObjectStore
from app.vault.stores import open_store
from app.vault.writer import UploadWriter
from tests.factories.datasets import entries
from tests.factories.line import SETTLE_SECONDS
from tests.vault.test_upload_writer import UNLIMITED, reader

TABLE = secrets.token_bytes(CHUNK_BYTES + 7)


@pytest.fixture
def store(storage_url: str) -> ObjectStore:
    return open_store(storage_url)


@pytest.mark.parametrize("act", [UploadWriter.finish, lambda writer: writer.write(b"x")])
def test_an_aborted_upload_cannot_be_written_or_finished(
    store: ObjectStore, sealing_key: bytes, act: Callable[[UploadWriter], object]
) -> None:
    """W10: the abort discards buffered bytes, so a later object would lack its beginning."""
    writer = UploadWriter(store, sealing_key, "ct_1", UNLIMITED)
    writer.write(TABLE)
    writer.abort()
    with pytest.raises(DependencyUnavailable):
        act(writer)
    assert [content for content in entries(store).values() if content] == []


def test_abort_waits_for_a_running_finish(
    store: ObjectStore, sealing_key: bytes, opening_secret: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = UploadWriter(store, sealing_key, "ct_1", UNLIMITED)
    writer.write(TABLE)
    entered, may_continue, publish = threading.Event(), threading.Event(), writer._target.publish

    def slow() -> str:
        entered.set()
        assert may_continue.wait(SETTLE_SECONDS)
        return publish()

    monkeypatch.setattr(writer._target, "publish", slow)
    with ThreadPoolExecutor(2) as pool:
        finishing = pool.submit(writer.finish)
        assert entered.wait(SETTLE_SECONDS)
        aborting = pool.submit(writer.abort)
        futures.wait([aborting], 0.5)  # without the wait it would have ended by then
        may_continue.set()
        aborting.result()
    with reader(store, finishing.result().name, writer.box, opening_secret) as file:
        assert file.read() == TABLE
