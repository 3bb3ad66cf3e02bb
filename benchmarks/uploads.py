"""Uploads: from a client into the vault, and from CSV to the sealed table, beside what disk and one core can do.

``python -m benchmarks.uploads --gib 5`` starts a real API in a folder of its own, streams random bytes into it, and
prints one CSV line a figure. Wall time is that of a machine that may be shared: ``dd`` is measured in the same minute.
"""

import argparse
import csv
import hashlib
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from app.vault.envelope import seal_chunk

MIB = 1 << 20
SCRIPTS = Path(sys.executable).parent
ROWS = 4_000_000
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "lower": 17, "upper": 90, "missing": {"impute": 38}},
    {"name": "hours", "type": "real", "lower": 1, "upper": 99},
    {"name": "dose", "type": "real", "lower": -5, "upper": 5},
    {"name": "sex", "type": "categorical", "categories": ["Female", "Male"]},
    {"name": "sick", "type": "binary"},
]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--gib", type=float, default=5.0, help="size of the streamed body")
    size = int(arguments.parse_args().gib * 1024) * MIB
    write = csv.writer(sys.stdout).writerow
    write(["what", "value", "unit"])
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        disk, core = disk_rate(Path(folder), size), seal_rate()
        with api(Path(folder) / "data") as (client, process):
            uploaded, peak = upload(client, process, size)
        write(["dd conv=fsync", round(disk), "MB/s"])
        write(["hash and seal, one core", round(core), "MB/s"])
        write([f"body of {size >> 30} GiB into the vault", round(uploaded), "MB/s"])
        write(["share of the smaller of the two", round(uploaded / min(disk, core), 2), ""])
        write(["peak memory of the API", round(peak), "MiB"])
        wall, cpu = ingestion(Path(folder) / "house")
        write(["CSV to the sealed table, processor time of the child", round(cpu), "MB/s"])
        write(["CSV to the sealed table", round(wall), "MB/s"])


def disk_rate(folder: Path, size: int) -> float:
    """MB/s of ``dd conv=fsync``."""
    target = folder / "dd"
    command = ["dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={size // MIB}", "conv=fsync"]
    started = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    elapsed = time.perf_counter() - started
    target.unlink()
    return size / 1e6 / elapsed


def seal_rate(chunks: int = 500) -> float:
    """MB/s of processor time of hashing and sealing chunks in memory."""
    key, chunk = secrets.token_bytes(32), secrets.token_bytes(MIB)
    started = time.process_time()
    for index in range(chunks):
        hashlib.sha256(chunk)
        seal_chunk(key, "ct", index, chunk, last=False)
    return chunks * MIB / 1e6 / (time.process_time() - started)


@contextmanager
def api(data: Path) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """An API of its own, and an owner's client."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {"COREVAULT_DATA_DIR": str(data)}
    run: Callable[..., object] = lambda *words: subprocess.run(  # noqa: E731
        [SCRIPTS / "corevaultd", *words], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    run("migrate")
    run("keys")
    run("admin-key", str(data / "admin.key"))
    command = [str(SCRIPTS / "corevaultd"), "api", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = f"http://127.0.0.1:{port}"
    try:
        while not _ready(base):
            time.sleep(0.1)
        secret = (data / "admin.key").read_text().strip()
        with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as admin:
            key = admin.post("/v1/api-keys", json={"name": "bench", "role": "owner"}).json()["key"]
        with httpx.Client(base_url=base, headers={"Authorization": f"Bearer {key}"}, timeout=900) as client:
            yield client, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _ready(base: str) -> bool:
    try:
        return httpx.get(f"{base}/health/ready", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def upload(client: httpx.Client, process: subprocess.Popen[bytes], size: int) -> tuple[float, float]:
    """MB/s of one body until it is durable, and the API's peak memory in MiB."""
    piece = secrets.token_bytes(MIB)
    body = {"name": "bench", "sensitivity": "private", "columns": COLUMNS, "privacy_unit": {"kind": "row"}}
    declared = client.post("/v1/datasets", json=body | {"slots": 1000, "budget": {"epsilon": 1.0}}).json()
    headers = {"Content-Type": "text/csv", "Content-Length": str(size)}
    started = time.perf_counter()
    pieces = (piece for _ in range(size // MIB))
    answer = client.put(f"/v1/datasets/{declared['id']}/content", content=pieces, headers=headers)
    elapsed = time.perf_counter() - started
    answer.raise_for_status()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    return size / 1e6 / elapsed, int(status["VmHWM"].split()[0]) / 1024


def ingestion(folder: Path) -> tuple[float, float]:
    """MB/s of wall and of processor time from a sealed CSV to the sealed table."""
    from app.inference.protocol import Column  # noqa: PLC0415
    from tests.enclave.house import new_vault  # noqa: PLC0415  (the vault that the enclave's tests use)
    from workers.enclave import Limits  # noqa: PLC0415

    columns = [
        Column(each["name"], each["type"], each.get("lower"), each.get("upper"), tuple(each.get("categories", ())))
        for each in COLUMNS
    ]
    lines = (_line(place) for place in range(ROWS))
    data = b"age,hours,dose,sex,sick\n" + b"".join(lines)
    vault = new_vault(folder)
    received = vault.receive(data)
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    vault.ingest(received, columns, slots=ROWS, limits=Limits(memory_bytes=2 << 30))
    elapsed, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return len(data) / 1e6 / elapsed, len(data) / 1e6 / spent


def _line(place: int) -> bytes:
    sex = (b"Female", b"Male")[place & 1]
    hours, dose = 1 + (place * 7919 % 98_000) / 1000, (place * 104_729 % 10_000) / 1000 - 5
    return b"%d,%.12f,%.12f,%s,%d\n" % (17 + place % 74, hours, dose, sex, place & 1)


if __name__ == "__main__":
    main()
