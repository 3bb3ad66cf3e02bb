"""Sealing of uploads as they arrive: bounded memory, no plaintext, no partial object."""

import hashlib
import resource
import secrets
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, SealedBox

from app.errors import ContentTooLarge, DependencyUnavailable
from app.vault.envelope import CHUNK_BYTES, HEADER_BYTES
from app.vault.local_store import LocalStore
from app.vault.reader import SealedReader
from app.vault.store import ObjectStore
from app.vault.writer import SealedUpload, UploadWriter

UNLIMITED = 1 << 40
Upload = Callable[..., SealedUpload]
Boxes = dict[str, bytes]


@pytest.fixture
def boxes() -> Boxes:
    """Boxes of the uploads, by the names of their objects."""
    return {}


@pytest.fixture
def upload(store: LocalStore, sealing_key: bytes, boxes: Boxes) -> Upload:
    def send(pieces: list[bytes], upload_id: str = "ct_1") -> SealedUpload:
        with UploadWriter(store, sealing_key, upload_id, UNLIMITED) as writer:
            for piece in pieces:
                writer.write(piece)
            finished = writer.finish()
            boxes[finished.name] = writer.box
            return finished

    return send


def reader(store: ObjectStore, name: str, box: bytes, opening_secret: bytes) -> SealedReader:
    key = SealedBox(PrivateKey(opening_secret)).decrypt(box)[:32]
    return SealedReader(store.open(name), key, "ct_1")


def files(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file()]


@contextmanager
def disk_of(size: int) -> Iterator[None]:
    """Limit the size of files: the operating system fails a write beyond ``size``."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    "size", [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 2 * CHUNK_BYTES, 3 * CHUNK_BYTES + 7]
)
def test_a_sealed_upload_is_decrypted_to_its_plaintext(
    store: LocalStore, upload: Upload, boxes: Boxes, opening_secret: bytes, size: int
) -> None:
    plaintext = secrets.token_bytes(size)
    pieces = [plaintext[start : start + 300_001] for start in range(0, size, 300_001)]
    sealed = upload(pieces)
    assert sealed.size == size
    with reader(store, sealed.name, boxes[sealed.name], opening_secret) as file:
        assert file.size == size
        assert file.read() == plaintext


def test_w1_the_sealed_object_needs_the_opening_key(upload: Upload, boxes: Boxes, tmp_path: Path) -> None:
    """W1, W3: the store has neither the rows nor their digest, and another key cannot open the box."""
    canary = b"canary-7f3a,123456.78901234\n"
    sealed, sha256 = upload([canary] * 100_000), hashlib.sha256(canary * 100_000)
    stored = b"".join(path.read_bytes() for path in files(tmp_path))
    for trace in (canary[:6], b"123456.789", sha256.digest(), sha256.hexdigest().encode()):
        assert trace not in stored
    with pytest.raises(CryptoError):
        SealedBox(PrivateKey.generate()).decrypt(boxes[sealed.name])


def test_the_digest_is_of_the_plaintext_so_far(store: LocalStore, sealing_key: bytes) -> None:
    with UploadWriter(store, sealing_key, "ct_1", UNLIMITED) as writer:
        for plaintext in (b"", b"x" * 10, bytes(CHUNK_BYTES)):
            writer.write(plaintext)
        assert (writer.size, writer.sha256) == (
            10 + CHUNK_BYTES,
            hashlib.sha256(b"x" * 10 + bytes(CHUNK_BYTES)).digest(),
        )


def test_equal_uploads_have_unrelated_ciphertexts(store: LocalStore, upload: Upload) -> None:
    first, second = upload([b"x" * 1000]), upload([b"x" * 1000])
    with store.open(first.name) as one, store.open(second.name) as two:
        assert one.read()[HEADER_BYTES:] != two.read()[HEADER_BYTES:]


def test_memory_is_bounded_for_small_and_large_writes(store: LocalStore, upload: Upload) -> None:
    piece, large = bytes(64 << 10), bytes(32 << 20)
    for pieces in ([piece] * 512, [large]):
        tracemalloc.start()
        upload(pieces)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 6 * CHUNK_BYTES


def test_a_body_beyond_the_limit_is_refused_and_not_stored(
    store: LocalStore, sealing_key: bytes, tmp_path: Path
) -> None:
    with UploadWriter(store, sealing_key, "ct_1", 3 * CHUNK_BYTES) as writer:
        writer.write(bytes(3 * CHUNK_BYTES))
        with pytest.raises(ContentTooLarge):
            writer.write(b"x")
        assert files(tmp_path) == []


@pytest.mark.parametrize("room", [10, CHUNK_BYTES, 2 * CHUNK_BYTES])
def test_a_full_disk_is_unavailable_and_leaves_no_file(
    store: LocalStore, upload: Upload, tmp_path: Path, room: int
) -> None:
    """W10: a full disk fails the upload with an error, and no file stays."""
    with disk_of(room), pytest.raises(DependencyUnavailable):
        upload([bytes(CHUNK_BYTES)] * 4)
    assert files(tmp_path) == []


def test_a_failed_publication_leaves_no_file(
    store: LocalStore, upload: Upload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.vault.local_store.os.fsync", full)
    with pytest.raises(DependencyUnavailable):
        upload([b"x"])
    assert files(tmp_path) == []


def test_an_aborted_or_unfinished_upload_leaves_no_file(store: LocalStore, sealing_key: bytes, tmp_path: Path) -> None:
    writer = UploadWriter(store, sealing_key, "ct_1", UNLIMITED)
    writer.write(bytes(2 * CHUNK_BYTES))
    writer.abort()
    with UploadWriter(store, sealing_key, "ct_1", UNLIMITED) as left:
        left.write(bytes(2 * CHUNK_BYTES))
    assert files(tmp_path) == []


def test_a_finished_upload_survives_the_end_of_its_block(store: LocalStore, upload: Upload) -> None:
    with store.open(upload([b"x"]).name) as source:
        assert source.read()
