"""Conversion of upload sources to streams of chunks."""

import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from corevault import _digest
from corevault._arguments import describe
from corevault._formats import CSV, check_format, find_format, find_media_type
from corevault._hints import find_hint
from corevault._tables import TABLES, make_table
from corevault.errors import InvalidArgument, UnreadableSource, WrongType

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_CHUNK_BYTES = 1 << 20
_SOURCES = f"Pass a path, bytes, a file that is open in binary mode, an iterable of bytes, {TABLES}"
_TEXT_MODE = "The file is open in text mode; open it in binary mode, as in open(path, 'rb')."


@dataclass(frozen=True, slots=True)
class Upload:
    """A content that is ready to be read.

    ``chunks()`` starts the stream; unless ``repeatable`` it can be called once. ``start`` are the first bytes.
    ``length`` and ``digest`` are None if they cannot be computed beforehand. ``open_file()`` opens the content as
    a file that can seek, if there is one. ``index`` are the names of a pandas index, which is not sent.
    """

    media_type: str
    chunks: Callable[[], Iterator[bytes]]
    start: bytes
    repeatable: bool = True
    length: int | None = None
    digest: str | None = None
    open_file: Callable[[], BinaryIO] | None = None
    index: tuple[str, ...] = ()

    def headers(self) -> dict[str, str]:
        """Content-Type, and Content-Length and Content-Digest if their values are available."""
        headers = {"Content-Type": self.media_type}
        if self.length is not None:
            headers["Content-Length"] = str(self.length)
        if self.digest is not None:
            headers["Content-Digest"] = self.digest
        return headers


def prepare(source: object, media_type: str | None = None) -> Upload:
    """The upload of a source, with its media type. Tables are sent as CSV.

    The media type is the caller's, or follows from the first bytes, or from a path's suffix; otherwise it is CSV.

    Raises:
        WrongType: ``source`` is of another type.
        UnreadableSource: a file cannot be read.
        InvalidArgument: the source is empty, the server would reject its format, or neither its bytes nor its suffix
            show a format.
    """
    if media_type is not None and not isinstance(media_type, str):
        raise WrongType(f"media_type must be text such as {CSV}; {describe(media_type)}.")
    upload = open_source(source)
    check_format(upload.start)
    suffix = Path(source).suffix if isinstance(source, str | os.PathLike) else None
    return replace(upload, media_type=find_media_type(upload.start, suffix, media_type))


def open_source(source: object) -> Upload:
    """The upload of ``source``, with the media type of its first bytes."""
    if isinstance(source, str | os.PathLike):
        return _from_path(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return _from_bytes(bytes(source))
    if hasattr(source, "read"):
        return _from_file(source)
    if isinstance(source, type):
        raise WrongType(f"{_SOURCES}; {describe(source)}.")
    if isinstance(source, list | tuple) and not source:
        raise InvalidArgument("There is nothing to upload: the list is empty; pass a table with rows.")
    if (table := make_table(source)) is not None:
        return Upload(CSV, table.chunks, next(table.chunks()), index=table.index)
    if (hint := find_hint(source)) is not None:
        raise WrongType(hint)
    if isinstance(source, Iterable) and not isinstance(source, set | frozenset | Mapping):
        return _from_stream(_check_chunks(source))
    raise WrongType(f"{_SOURCES}; {describe(source)}.")


def add_digest(upload: Upload) -> Upload:
    """The upload with its length and digest, if it can be read twice."""
    if not upload.repeatable:
        return upload
    length = sum(len(chunk) for chunk in upload.chunks()) if upload.length is None else upload.length
    return replace(upload, length=length, digest=_digest.digest_chunks(upload.chunks()))


def _from_path(source: str | os.PathLike[str]) -> Upload:
    path = Path(source)
    if isinstance(source, str) and "\n" in source:  # no path has a line break, and a message must not quote rows
        raise InvalidArgument("A path is expected, but this is the text of a table; pass text.encode().")
    if isinstance(source, str) and _ADDRESS.match(source):
        raise InvalidArgument("This is an address; download the file first, and pass its path or its bytes.")
    if not str(source):
        raise InvalidArgument("The path is empty; pass the path of a file.")

    def chunks() -> Iterator[bytes]:
        with path.open("rb") as file:
            yield from _read(file)

    with _translate_faults(f"{str(path)[:200]} cannot be read; check that it exists and that you may read it."):
        if path.is_dir():
            raise UnreadableSource(f"{path} is a directory; pass the path of one file.")
        return _make_upload(chunks, path.stat().st_size, lambda: path.open("rb"))


def _from_bytes(content: bytes) -> Upload:
    def chunks() -> Iterator[bytes]:
        for start in range(0, len(content), _CHUNK_BYTES):
            yield content[start : start + _CHUNK_BYTES]

    return _make_upload(chunks, len(content), lambda: io.BytesIO(content))


def _from_file(file: Any) -> Upload:
    if isinstance(file, io.TextIOBase) or isinstance(getattr(file, "encoding", None), str):
        raise WrongType(_TEXT_MODE)
    with _translate_faults("The file cannot be read; check that it is not closed, and not open for writing only."):
        if not (hasattr(file, "seekable") and file.seekable()):
            return _from_stream(_read(file))
        start = file.tell()

        def chunks() -> Iterator[bytes]:
            file.seek(start)
            try:
                yield from _read(file)
            finally:
                if not getattr(file, "closed", False):
                    file.seek(start)  # so that the same file can be checked and then uploaded

        length = file.seek(0, os.SEEK_END) - start
        return _make_upload(chunks, length, lambda: cast("BinaryIO", io.BufferedReader(_Window(file, start, length))))


def _from_stream(stream: Iterator[bytes]) -> Upload:
    first = next((chunk for chunk in stream if chunk), b"")
    return Upload(find_format(first) or CSV, lambda: chain([first], stream), first, repeatable=False)


def _make_upload(chunks: Callable[[], Iterator[bytes]], length: int, open_file: Callable[[], BinaryIO]) -> Upload:
    first = next(chunks(), b"")
    return Upload(find_format(first) or CSV, chunks, first, length=length, open_file=open_file)


class _Window(io.RawIOBase):
    """A view of a caller's file from ``start`` to its end. Closing it does not close the caller's file."""

    def __init__(self, file: Any, start: int, length: int) -> None:
        super().__init__()
        self._file, self._start, self._length, self._place = file, start, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._length}[whence]
        return self._place

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._start + self._place)
        read = self._file.read(len(buffer))
        self._file.seek(self._start)
        buffer[: len(read)] = read
        self._place += len(read)
        return len(read)


def _check_chunks(source: Iterable[object]) -> Iterator[bytes]:
    for chunk in source:
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise WrongType(
                f"This iterable yields values of type {type(chunk).__name__}, not bytes. Pass {TABLES}; encode text as "
                "UTF-8."
            )
        yield bytes(chunk)


def _read(file: Any) -> Iterator[bytes]:
    while chunk := file.read(_CHUNK_BYTES):
        if isinstance(chunk, str):
            raise WrongType(_TEXT_MODE)
        yield chunk


@contextmanager
def _translate_faults(sentence: str) -> Iterator[None]:
    try:
        yield
    except InvalidArgument:
        raise
    except (OSError, ValueError) as error:  # a closed file raises ValueError
        raise UnreadableSource(sentence) from error
