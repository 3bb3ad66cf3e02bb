"""Runs the API as several processes on one socket; any free process takes the next connection."""

import os
import socket
import tempfile
from pathlib import Path

import typer

from app.cli.failures import warn
from app.cli.processes import Child, find_script
from app.cli.sockets import format_address
from app.cli.supervisor import supervise
from app.config import Settings
from app.vault.keys import load_api_keys

METRICS_DIR = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder in which the processes share the counts of metrics.

The metrics library reads it when it is imported.
"""
_COUNTED_SEPARATELY = (
    "the broker is not Redis, so each process counts requests by itself; an API key may send up to {} times the stated "
    "number of requests"
)


def serve_by_several(settings: Settings, listener: socket.socket, data_dir: Path | None, processes: int) -> None:
    """Keep ``processes`` API processes running on ``listener`` until a signal.

    Raises:
        VaultError: key files are missing or damaged, so no process can serve requests.
    """
    with listener:
        _serve(settings, listener, data_dir, processes)


def _serve(settings: Settings, listener: socket.socket, data_dir: Path | None, processes: int) -> None:
    load_api_keys(settings.keys_dir)
    if not settings.broker_url.startswith(("redis://", "rediss://")):
        warn(_COUNTED_SEPARATELY.format(processes))
    with tempfile.TemporaryDirectory(prefix="corevault-metrics-") as metrics:
        typer.echo(f"{processes} processes are listening on {format_address(listener, settings)}")
        supervise([_child(number, listener, data_dir, metrics) for number in range(1, processes + 1)])


def _child(number: int, listener: socket.socket, data_dir: Path | None, metrics: str) -> Child:
    """Make an API process that reads its settings from the environment.

    Its secrets may be in files that the environment names.
    """
    handle, host = listener.fileno(), listener.getsockname()[0]
    where = () if data_dir is None else ("--data-dir", str(data_dir))
    command = (find_script("corevaultd"), "api", "--host", host, "--fd", str(handle), *where)
    return Child(f"api {number}", command, {**os.environ, METRICS_DIR: metrics}, (handle,))
