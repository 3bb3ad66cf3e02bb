"""Upload sources: anything with rows, turned into a stream of chunks and, where it can be read twice, a digest."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from corevault import _digest

if TYPE_CHECKING:
    import pandas as pd

Source = "str | os.PathLike[str] | bytes | BinaryIO | Iterable[bytes] | pd.DataFrame"

CSV = "text/csv"
PARQUET = "application/vnd.apache.parquet"
ARROW_STREAM = "application/vnd.apache.arrow.stream"

_BY_SUFFIX = {".csv": CSV, ".parquet": PARQUET, ".arrow": ARROW_STREAM, ".arrows": ARROW_STREAM}
_CHUNK_BYTES = 1 << 20
_FRAME_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Upload:
    """``chunks()`` starts the stream; ``length`` and ``digest`` are None where they are not known beforehand."""

    media_type: str
    chunks: Callable[[], Iterator[bytes]]
    length: int | None = None
    digest: str | None = None

    def headers(self) -> dict[str, str]:
        """Content-Type, and Content-Length and Content-Digest where they are known."""
        headers = {"Content-Type": self.media_type}
        if self.length is not None:
            headers["Content-Length"] = str(self.length)
        if self.digest is not None:
            headers["Content-Digest"] = self.digest
        return headers


def prepare(source: object, media_type: str | None = None) -> Upload:
    """The upload of a path, bytes, binary file, DataFrame (as CSV) or iterable of bytes.

    All but streams that cannot seek are read twice, the first time for the digest, and none is held
    whole. The media type is guessed from a path's suffix or from Parquet's first bytes, else CSV.
    Raises ``TypeError`` for any other source and ``ValueError`` for a path of an unknown suffix.
    """
    if isinstance(source, str | os.PathLike):
        return _from_path(Path(source), media_type)
    if isinstance(source, bytes | bytearray | memoryview):
        return _from_bytes(bytes(source), media_type)
    if hasattr(source, "read"):
        return _from_file(cast("BinaryIO", source), media_type)
    if hasattr(source, "to_csv"):
        return _from_frame(cast("pd.DataFrame", source))
    if isinstance(source, Iterable):
        stream = cast("Iterable[bytes]", source)
        return Upload(media_type or CSV, lambda: iter(stream))
    raise TypeError("Upload a path, bytes, a binary file, a DataFrame or an iterable of bytes.")


def _from_path(path: Path, media_type: str | None) -> Upload:
    kind = media_type or _BY_SUFFIX.get(path.suffix.lower())
    if kind is None:
        raise ValueError(
            "Name the media_type, or save it as one of these: this file's suffix is none of .csv, .parquet, .arrow."
        )

    def chunks() -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from _read(file)

    return Upload(kind, chunks, path.stat().st_size, _digest.of_chunks(chunks()))


def _from_bytes(content: bytes, media_type: str | None) -> Upload:
    kind = media_type or (PARQUET if content.startswith(b"PAR1") else CSV)

    def chunks() -> Iterator[bytes]:
        for start in range(0, len(content), _CHUNK_BYTES):
            yield content[start : start + _CHUNK_BYTES]

    return Upload(kind, chunks, len(content), _digest.of_bytes(content))


def _from_file(file: BinaryIO, media_type: str | None) -> Upload:
    if not file.seekable():
        return Upload(media_type or CSV, lambda: _read(file))
    start = file.tell()

    def chunks() -> Iterator[bytes]:
        file.seek(start)
        yield from _read(file)

    length = file.seek(0, os.SEEK_END) - start
    return Upload(media_type or CSV, chunks, length, _digest.of_chunks(chunks()))


def _from_frame(frame: "pd.DataFrame") -> Upload:
    def chunks() -> Iterator[bytes]:
        yield frame.iloc[:0].to_csv(index=False).encode()
        for start in range(0, len(frame), _FRAME_ROWS):
            yield frame.iloc[start : start + _FRAME_ROWS].to_csv(index=False, header=False).encode()

    return Upload(CSV, chunks, sum(len(chunk) for chunk in chunks()), _digest.of_chunks(chunks()))


def _read(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        yield chunk
