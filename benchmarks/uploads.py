"""Speed of uploads into the vault, and of the ingestion of CSV.

``python -m benchmarks.uploads --gib 5`` starts a real API in a temporary folder, streams random bytes into it, and
prints a table. ``--csv`` also writes it to a file. The machine may be shared, so wall time is compared with ``dd``,
which writes as many bytes as the body has: half of them before and half after. The table has processor time too.
"""

import argparse
import hashlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from rich.console import Console
from rich.table import Table

from app.cli.memory import keep_what_is_freed
from app.vault.envelope import seal_chunk
from benchmarks.environment import describe_environment
from benchmarks.figures import Figure, format_three_digits, write_csv
from benchmarks.ingestion import COLUMNS, measure_ingestion
from benchmarks.processes import measure_cpu_seconds
from support.processes import free_port

MIB = 1 << 20
SCRIPTS = Path(sys.executable).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gib", type=float, default=5.0, help="size of the streamed body")
    parser.add_argument("--csv", type=Path, help="the CSV file to write")
    options = parser.parse_args()
    load, started = os.getloadavg()[0], time.perf_counter()
    keep_what_is_freed()  # as the API does; sealing is 1.5 times as fast
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        figures = [*measure_bodies(Path(folder), int(options.gib * 1024) * MIB), *measure_tables(Path(folder))]
    show(figures, f"{time.perf_counter() - started:.0f} s, load before {load:.1f}")
    if options.csv:
        write_csv(options.csv, figures, load)


def measure_bodies(folder: Path, size: int) -> Iterator[Figure]:
    """Figures of one upload of ``size`` bytes, between two halves of ``dd``."""
    core, before = measure_seal_rate(), measure_disk_seconds(folder, size // 2)
    with run_api(folder / "data") as (client, process):
        result = upload(client, process, size)
    disk = 2 * (size // 2) / 1e6 / (before + measure_disk_seconds(folder, size // 2))
    gigabytes = size / 1e9
    rate = size / 1e6 / result.seconds
    yield Figure("dd conv=fsync", disk, "MB/s")
    yield Figure("hash and seal, one core", core, "MB/s")
    yield Figure(f"body of {size / 2**30:g} GiB into the vault, durable", rate, "MB/s")
    yield Figure("share of the smaller of the two", 100 * rate / min(disk, core), "%", "at least 60")
    yield Figure("processor time of the API", result.api_cpu / gigabytes, "s/GB")
    yield Figure("processor time of the client", result.client_cpu / gigabytes, "s/GB")
    yield Figure("peak memory of the API", result.peak_mib, "MiB", "at most 150")


def measure_tables(folder: Path) -> Iterator[Figure]:
    """Figures of ingestion, for numbers only and with words among them."""
    for name, every, target in (("", 0, "at least 60"), (", a word in each column of each piece", 1_000, "")):
        rates = measure_ingestion(folder / f"house{every}", words_every=every)
        yield Figure(f"CSV to the sealed table{name}, by processor time", rates.by_processor, "MB/s", target)
        yield Figure(f"CSV to the sealed table{name}, by the clock", rates.by_clock, "MB/s")


def show(figures: Sequence[Figure], circumstances: str) -> None:
    table = Table(title=f"Uploads, {os.cpu_count()} cores, {describe_environment()['processor']}")
    for name in ("what", "value", "unit", "target"):
        table.add_column(name, justify="right" if name == "value" else "left")
    for each in figures:
        table.add_row(each.what, format_three_digits(each.value), each.unit, each.target)
    console = Console(width=120)
    console.print(table)
    console.print(circumstances)


def measure_disk_seconds(folder: Path, size: int) -> float:
    """Seconds of ``dd conv=fsync`` for ``size`` bytes."""
    target = folder / "dd"
    command = ["dd", "if=/dev/zero", f"of={target}", "bs=1M", f"count={size // MIB}", "conv=fsync"]
    started = time.perf_counter()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    elapsed = time.perf_counter() - started
    target.unlink()
    return elapsed


def measure_seal_rate(chunks: int = 500) -> float:
    """MB/s of processor time of hashing and sealing chunks in memory."""
    key, chunk = secrets.token_bytes(32), secrets.token_bytes(MIB)
    started = time.process_time()
    for index in range(chunks):
        hashlib.sha256(chunk)
        seal_chunk(key, "ct", index, chunk, last=False)
    return chunks * MIB / 1e6 / (time.process_time() - started)


@contextmanager
def run_api(data: Path) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """A temporary API process, and an owner's client."""
    port = free_port()
    variables = os.environ | {"COREVAULT_DATA_DIR": str(data)}
    for words in (("migrate",), ("keys",), ("admin-key", str(data / "admin.key"))):
        subprocess.run([SCRIPTS / "corevaultd", *words], env=variables, check=True, stdout=subprocess.DEVNULL)
    command = [str(SCRIPTS / "corevaultd"), "api", "--port", str(port)]
    process = subprocess.Popen(command, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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


@dataclass(frozen=True, slots=True)
class Uploaded:
    """Cost of one body until it is durable. ``api_cpu`` and ``client_cpu`` are in seconds."""

    seconds: float
    api_cpu: float
    client_cpu: float
    peak_mib: float


def upload(client: httpx.Client, process: subprocess.Popen[bytes], size: int) -> Uploaded:
    """Declares a dataset and streams ``size`` bytes to it."""
    piece = secrets.token_bytes(MIB)
    body = {"name": "bench", "sensitivity": "private", "columns": COLUMNS, "privacy_unit": {"kind": "row"}}
    dataset = client.post("/v1/datasets", json=body | {"slots": 1000, "budget": {"epsilon": 1.0}}).json()
    headers = {"Content-Type": "text/csv", "Content-Length": str(size)}
    pieces = (piece for _ in range(size // MIB))
    started, api_before, client_before = time.perf_counter(), measure_cpu_seconds(process.pid), time.process_time()
    answer = client.put(f"/v1/datasets/{dataset['id']}/content", content=pieces, headers=headers)
    seconds = time.perf_counter() - started
    answer.raise_for_status()
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    return Uploaded(
        seconds,
        api_cpu=measure_cpu_seconds(process.pid) - api_before,
        client_cpu=time.process_time() - client_before,
        peak_mib=int(status["VmHWM"].split()[0]) / 1024,
    )


if __name__ == "__main__":
    main()
