"""Speed of reads of public releases: ``make reads-bench``. Prints a table and writes a CSV file.

A temporary server with one API process and the generator of :mod:`benchmarks.open_loop` share two cores. Requests are
for the points of one release: with a current ETag (304), and without one (200, JSON).
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import httpx
from corevault import Client, LogisticRegression, Schema, binary, real
from rich.console import Console
from rich.table import Table

from benchmarks.environment import describe_environment
from benchmarks.processes import measure_cpu_seconds
from demo.server import Server, run_server

RATES = (1_500, 2_500, 3_500)
CONNECTIONS = 64
CORES = 2
ROWS, SIZE = 500, 100


@dataclass(frozen=True)
class Result:
    """One run. CPU time is in microseconds for each request, and ``load`` is the load before the run."""

    kind: str
    rate: int
    answered: int
    due: int
    p50_ms: float
    p99_ms: float
    largest_ms: float
    server_us: float
    generator_us: float
    load: float


FIELDS = tuple(field.name for field in fields(Result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--csv", type=Path, help="the CSV file to write")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # inherited by server and generator
    with tempfile.TemporaryDirectory(prefix="corevault-reads-") as folder, run_server(Path(folder)) as server:
        path = _release(server)
        results = list(_measure(server, Path(folder), path, options.seconds))
    _show(results)
    if options.csv is not None:
        _write(options.csv, results)


def _release(server: Server) -> str:
    """The path of a small public release's points."""
    with _client(server, server.admin_key) as admin:
        key = admin.keys.create("owner", "owner").key
    with _client(server, key) as owner:
        schema = Schema(real("a", 0, 1), real("b", 0, 1), binary("sick"))
        dataset = owner.datasets.create("reads", schema, slots=ROWS, epsilon=2.0)
        lines = [f"{i / ROWS},{(7 * i % ROWS) / ROWS},{i % 2}" for i in range(ROWS)]
        owner.datasets.upload(dataset.id, "\n".join(["a,b,sick", *lines]).encode())
        owner.datasets.wait_until_ready(dataset.id)
        model = LogisticRegression(features=["a", "b"], target="sick")
        job = owner.jobs.wait(owner.jobs.submit(dataset.id, model, size=SIZE, epsilon=1.0), timeout_seconds=120)
    return f"/v1/releases/{job.release_id}/points"


def _client(server: Server, key: str | None) -> Client:
    return Client(server.base_url, key, transport=httpx.HTTPTransport())


def _measure(server: Server, folder: Path, path: str, seconds: float) -> Iterator[Result]:
    whole = httpx.get(server.base_url + path, headers={"Accept": "application/json"})
    api = _api_process(folder / "data")
    for kind, header in (("304", f"If-None-Match: {whole.headers['etag']}"), ("200", "Accept: application/json")):
        for rate in RATES:
            time.sleep(1)
            load, before = os.getloadavg()[0], measure_cpu_seconds(api)
            answers = _generate(server, path, rate, seconds, ["Accept: application/json", header])
            spent = measure_cpu_seconds(api) - before
            assert set(answers["statuses"]) == {kind}, answers
            yield Result(
                kind,
                rate,
                server_us=round(1e6 * spent / answers["answered"], 1),
                generator_us=round(1e6 * answers.pop("generator_cpu_seconds") / answers["answered"], 1),
                load=round(load, 1),
                **{name: value for name, value in answers.items() if name != "statuses"},
            )


def _generate(server: Server, path: str, rate: int, seconds: float, headers: Sequence[str]) -> dict[str, Any]:
    port = server.base_url.rpartition(":")[2]
    arguments = [port, path, str(rate), str(seconds), str(CONNECTIONS), *dict.fromkeys(headers)]
    command = [sys.executable, "-m", "benchmarks.open_loop", *arguments]
    answers: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return answers


def _api_process(data_dir: Path) -> int:
    """The id of the API process.

    Its command line and the data folder in its environment identify it.
    """
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                command, variables = (folder / "cmdline").read_bytes(), (folder / "environ").read_bytes()
            except OSError:
                continue
            if b"\0api\0" in command and f"COREVAULT_DATA_DIR={data_dir}".encode() in variables.split(b"\0"):
                return int(folder.name)
    raise LookupError("no API process has this data folder in its environment")


def _show(results: Sequence[Result]) -> None:
    table = Table(title=f"{CONNECTIONS} connections, {CORES} cores, {describe_environment()['processor']}")
    for name in FIELDS:
        table.add_column(name, justify="right")
    for each in results:
        table.add_row(*(str(value) for value in asdict(each).values()))
    Console(width=120).print(table)


def _write(file: Path, results: Sequence[Result]) -> None:
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, FIELDS)
        writer.writeheader()
        writer.writerows(asdict(each) for each in results)


if __name__ == "__main__":
    main()
