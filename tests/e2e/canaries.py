"""Canary values, and readers of all outputs and stored data of a service."""

import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import redis
import sqlalchemy as sa
from pyarrow.fs import FileSelector, S3FileSystem

from support.servers import S3
from tests.e2e.house import table

DOUBLE = 3.718281828171
AGE = 93
TEXT = "qqcanaryqq"
PERSON = 271_828_182_845


def canary_table() -> bytes:
    """Good rows, and all kinds of invalid cells."""
    lines = table(500).decode().splitlines()
    lines += [f"{AGE},{DOUBLE!r},a,1", f"{TEXT},1.0,a,0", f"50,1.0,{TEXT},1", f'1,"{TEXT}",a,1', f"{TEXT},{TEXT}"]
    return "\n".join(lines).encode()


def people_table() -> bytes:
    """Three rows of one person, with three spellings of the id, among other people."""
    lines = ["person,age,dose,group,sick", *(f"{i % 90},50,{i / 400!r},b,{i % 2}" for i in range(400))]
    lines[100:100] = [f"{PERSON},{AGE},{DOUBLE!r},a,1", f"0{PERSON},50,1.0,a,0"]
    return "\n".join([*lines, f"{PERSON}.0,50,{TEXT},a,1"]).encode()


BAD_TABLES = (  # rejected, or with many null rows
    f"{TEXT},age\n{TEXT},1\n".encode(),  # a column that was not declared
    f'age,dose,group,sick\n1,"{TEXT}\n'.encode(),  # a quote that never closes
    f"age,dose,group,sick\n{DOUBLE!r},1\n".encode() + b"\xff\xfe" + TEXT.encode(),  # invalid UTF-8
)


def needles() -> list[bytes]:
    """The canaries as text, and as bytes of floats and integers in both orders."""
    doubles = [struct.pack(order + "d", value) for order in "<>" for value in (DOUBLE, PERSON)]
    singles = [struct.pack(order + "f", DOUBLE) for order in "<>"]
    whole = [struct.pack(order + "q", PERSON) for order in "<>"]
    words = [TEXT.encode(), repr(DOUBLE).encode(), repr(DOUBLE)[:9].encode(), str(PERSON).encode()]
    return [*words, *doubles, *singles, *whole]


def find_needles(haystack: bytes) -> list[bytes]:
    return [needle for needle in needles() if needle in haystack]


@contextmanager
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """Run a collector of traces; yield its address and the bodies received."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def messages(data: Path, broker: str | None) -> Iterator[list[bytes]]:
    """Record every message in transit: commands to Redis, or files of the broker's folder."""
    seen: list[bytes] = []
    stop = threading.Event()
    watch = _watch_redis if broker else _watch_folder
    thread = threading.Thread(target=watch, args=(broker or data / "broker", seen, stop), daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        if broker:
            with redis.Redis.from_url(broker) as client:
                client.ping()  # the watcher waits for one more command
        thread.join()


def _watch_folder(folder: Path, seen: list[bytes], stop: threading.Event) -> None:
    while not stop.wait(0.005):  # a message lies there until a worker polls, at most every 0.05 s
        for path in folder.rglob("*"):
            try:
                content = path.name.encode() + (path.read_bytes() if path.is_file() else b"")
            except OSError:
                continue  # taken by a worker
            if content not in seen:
                seen.append(content)


def _watch_redis(url: str, seen: list[bytes], stop: threading.Event) -> None:
    with redis.Redis.from_url(url) as client, client.monitor() as monitor:
        while not stop.is_set():
            seen.append(repr(monitor.next_command()).encode())


def cells(url: str) -> Iterator[tuple[str, bytes]]:
    """Every table of a database as text, and on PostgreSQL also as stored."""
    engine = sa.create_engine(url)
    names = sa.inspect(engine).get_table_names()
    with engine.connect() as connection:
        for name in names:
            yield name, repr(connection.execute(sa.text(f"SELECT * FROM {name}")).all()).encode()
            if engine.dialect.name == "postgresql":
                cursor = connection.connection.cursor()
                with cursor.copy(f"COPY {name} TO STDOUT (FORMAT binary)") as copy:
                    yield name, b"".join(bytes(part) for part in copy)
    engine.dispose()


def keys(url: str) -> Iterator[tuple[str, bytes]]:
    """Every key of a Redis database, with its value in Redis's dump format."""
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter():
            yield key.decode(errors="replace"), key + (client.dump(key) or b"")


def objects(url: str) -> Iterator[tuple[str, bytes]]:
    """Every object below an S3 storage URL."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    files = S3FileSystem(
        endpoint_override=query["endpoint"][0],
        region=query["region"][0],
        access_key=S3.credentials["AWS_ACCESS_KEY_ID"],
        secret_key=S3.credentials["AWS_SECRET_ACCESS_KEY"],
    )
    for each in files.get_file_info(FileSelector(f"{parts.netloc}{parts.path}", recursive=True)):
        if each.is_file:
            with files.open_input_stream(each.path) as stream:
                yield each.path, stream.read()


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every existing file below a folder."""
    for path in folder.rglob("*"):
        try:
            yield path.name, path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:
            continue
