"""The requests for each source: its bytes, its length, and the digest of repeatable sources."""

import base64
import hashlib
import io
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from corevault import InvalidArgument
from corevault._formats import ARROW_STREAM, CSV, PARQUET
from corevault._upload import prepare

from tests.client.fake import DATASET, Script, ok

BODY = b"age,seen\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(300_000))
STREAM = b"\xff\xff\xff\xff\x10\x00\x00\x00"


class _Pipe(io.RawIOBase):
    """A stream that cannot seek, such as standard input."""

    def __init__(self, content: bytes) -> None:
        self._inner = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._inner.read(size)


def _upload(source: Any, *, progress: bool = False, media_type: str | None = None) -> tuple[bytes, dict[str, str]]:
    script = Script([ok(DATASET, 202)])
    with script.client() as client:
        client.datasets.upload("ds_1", source, progress=progress, media_type=media_type, max_null_share=None)
    request = script.seen[0]
    assert (request.method, request.url.path) == ("PUT", "/v1/datasets/ds_1/content")
    return script.bodies[0], dict(request.headers)


def _digest(body: bytes) -> str:
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


@pytest.mark.parametrize("kind", ["path", "str", "bytes", "file"])
def test_repeatable_sources_are_sent_with_digest_and_length(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(BODY)
    sources = {"path": path, "str": str(path), "bytes": BODY, "file": io.BytesIO(BODY)}
    body, headers = _upload(sources[kind])
    assert body == BODY
    assert headers["content-digest"] == _digest(BODY)
    assert headers["content-length"] == str(len(BODY))
    assert headers["content-type"] == CSV
    assert "transfer-encoding" not in headers


def test_a_file_is_sent_from_its_current_position() -> None:
    file = io.BytesIO(b"skip this" + BODY)
    file.seek(9)
    body, headers = _upload(file)
    assert (body, headers["content-digest"]) == (BODY, _digest(BODY))


@pytest.mark.parametrize("kind", ["pipe", "iterator"])
def test_a_stream_is_sent_without_a_digest(kind: str) -> None:
    body, headers = _upload(_Pipe(BODY) if kind == "pipe" else iter([BODY[:10], BODY[10:]]))
    assert body == BODY
    assert "content-digest" not in headers
    assert headers["transfer-encoding"] == "chunked"


def test_a_frame_is_sent_as_the_csv_that_pandas_writes() -> None:
    frame = pd.DataFrame({"x": [0.1, 1 / 3, -1e-300] * 9_000, "label": ["a, b", 'say "c"', "ü"] * 9_000})
    body, headers = _upload(frame)
    assert body == frame.to_csv(index=False).encode()
    assert headers["content-digest"] == _digest(body)
    pd.testing.assert_frame_equal(pd.read_csv(io.BytesIO(body)), frame)


def test_an_empty_frame_is_sent_as_its_header() -> None:
    assert _upload(pd.DataFrame({"a": [], "b": []}))[0] == b"a,b\n"


def test_no_chunk_is_large() -> None:
    assert max(len(chunk) for chunk in prepare(BODY).chunks()) <= 1 << 20


@pytest.mark.parametrize(
    ("name", "start", "expected"),
    [
        ("t.csv", b"x", CSV),
        ("t.CSV", b"x", CSV),
        ("t.parquet", b"PAR1", PARQUET),
        ("t.data", b"PAR1", PARQUET),
        ("t.arrow", STREAM, ARROW_STREAM),
        ("t.arrows", STREAM, ARROW_STREAM),
        ("t.bin", STREAM, ARROW_STREAM),
    ],
)
def test_the_media_type_of_a_path(tmp_path: Path, name: str, start: bytes, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(start)
    assert prepare(path).media_type == expected


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_name_that_contradicts_the_content_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"age,seen\n1,0\n")
    with pytest.raises(InvalidArgument, match="its content is of another format"):
        prepare(path)


def test_a_given_media_type_overrides_the_default(tmp_path: Path) -> None:
    assert prepare(b"PAR1....").media_type == PARQUET
    assert prepare(b"a\n").media_type == CSV
    assert prepare(b"a\n", ARROW_STREAM).media_type == ARROW_STREAM
    path = tmp_path / "table.data"
    path.write_bytes(b"a\n")
    assert prepare(path, CSV).media_type == CSV
    with pytest.raises(ValueError, match="media_type"):
        prepare(path)


def test_a_source_of_another_type_is_refused() -> None:
    with pytest.raises(TypeError):
        prepare(3)


def test_the_progress_bar_ends_full(capsys: pytest.CaptureFixture[str]) -> None:
    _upload(BODY, progress=True)
    shown = capsys.readouterr().err
    assert "Uploading" in shown
    assert "4.2/4.2 MB" in shown or "/" in shown
    _upload(BODY)
    assert capsys.readouterr().err == ""
