"""Environments of peers from other projects, and processes in them.

Each peer has a virtual environment outside the repository. Its folder is named by a digest of its
requirements, so a changed requirement makes a new one.
"""

import hashlib
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.environment import ROOT

ENVIRONMENTS: Final = Path.home() / ".cache" / "corevault-peers"
TOO_SLOW: Final = "took longer than"
_LOG: Final = "log.txt"
_READY: Final = "installed.txt"
_INSTALL_SECONDS: Final = 1200
_LAST: Final = 160
"""Characters of an error that are kept."""


class PeerFailed(Exception):
    """A peer could not be installed or run; the text gives the reason."""


def install(folder: Path, name: str, requirements: Sequence[str]) -> Path:
    """Make an environment if it does not exist yet; gives its Python.

    Raises:
        PeerFailed: pip did not install the requirements.
    """
    digest = hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:8]
    home = folder / f"{name}-{digest}"
    python = home / "bin" / "python"
    if not (home / _READY).exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
        try:
            done = subprocess.run(
                command, env=_make_environment(), capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise PeerFailed(f"not installed within {_INSTALL_SECONDS} s") from error
        if done.returncode:
            raise PeerFailed(f"not installed: {_read_last_line(done.stderr)}")
        (home / _READY).write_text(_list_versions(python))
    return python


def read_versions(python: Path) -> dict[str, str]:
    """Read the versions of an environment's packages."""
    lines = (python.parents[1] / _READY).read_text().split()
    return dict(line.split("==", 1) for line in lines if "==" in line)


def _list_versions(python: Path) -> str:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "freeze"]
    return subprocess.run(command, env=_make_environment(), capture_output=True, text=True, check=True).stdout


def _read_last_line(text: str) -> str:
    errors = [line for line in text.splitlines() if line.startswith("ERROR")]
    return ((errors or text.splitlines() or ["no message"])[-1])[:_LAST]


def _make_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return kept | threads | {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false", "PYTHONWARNINGS": "ignore"}


class Worker:
    """A process in a peer's environment that answers one request after another."""

    def __init__(self, python: Path, module: str, arguments: Sequence[str], folder: Path) -> None:
        self._folder, self._command = folder, [str(python), "-m", module, *arguments]
        self._process: subprocess.Popen[str] | None = None

    def ask(self, arrays: Mapping[str, Any], request: Mapping[str, Any], limit_seconds: float) -> dict[str, Any]:
        """Answer one request; gives the arrays and ``seconds``.

        Raises:
            PeerFailed: the peer raised an error, ended, or took longer than the limit.
        """
        process = self._start()
        assert process.stdin is not None
        reading, writing = self._folder / "read.npz", self._folder / "write.npz"
        np.savez(reading, **arrays)
        try:
            process.stdin.write(json.dumps({**request, "read": str(reading), "write": str(writing)}) + "\n")
            process.stdin.flush()
        except BrokenPipeError as error:
            raise self._fail("ended") from error
        reply = self._read_reply(process, limit_seconds)
        if "error" in reply:
            raise PeerFailed(str(reply["error"])[:_LAST])
        with np.load(writing) as file:
            return {**file, "seconds": float(reply["seconds"])}

    def _start(self) -> "subprocess.Popen[str]":
        if self._process is None:
            with (self._folder / _LOG).open("a") as log:
                self._process = subprocess.Popen(
                    self._command,
                    cwd=ROOT,
                    env=_make_environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                )
        return self._process

    def _read_reply(self, process: "subprocess.Popen[str]", limit_seconds: float) -> dict[str, Any]:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], limit_seconds)
        if not ready:
            raise self._fail(f"{TOO_SLOW} {limit_seconds:g} s")
        line = process.stdout.readline()
        if not line:
            log = (self._folder / _LOG).read_text().strip().splitlines() or ["ended without a message"]
            raise self._fail(log[-1])
        reply: dict[str, Any] = json.loads(line)
        return reply

    def _fail(self, reason: str) -> PeerFailed:
        self.close()
        return PeerFailed(reason[:_LAST])

    def close(self) -> None:
        """End the process; the next request starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@contextmanager
def run_worker(python: Path, module: str, arguments: Sequence[str]) -> Iterator[Worker]:
    """Run a worker in a new temporary folder."""
    with tempfile.TemporaryDirectory(prefix="corevault-peer-") as folder:
        worker = Worker(python, module, arguments, Path(folder))
        try:
            yield worker
        finally:
            worker.close()
