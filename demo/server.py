"""A temporary server: ``corevaultd up`` on a free loopback port, stopped in all cases."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from demo.failure import DemoFailed

_READY_SECONDS = 60.0
_END_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Server:
    """The address of the server, and the admin key that it created."""

    base_url: str
    admin_key: str


@contextmanager
def run_server(folder: Path) -> Iterator[Server]:
    """Starts the server with its data in ``folder``. On exit, sends SIGTERM and waits, also after Ctrl-C.

    Raises ``DemoFailed`` if the server does not become ready, or must be killed.
    """
    base_url, key_file, log = f"http://127.0.0.1:{_free_port()}", folder / "admin.key", folder / "server.log"
    process = _start(folder, base_url, key_file, log)
    try:
        _wait_until_ready(process, base_url, log)
        yield Server(base_url, key_file.read_text().strip())
    finally:
        _end(process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start(folder: Path, base_url: str, key_file: Path, log: Path) -> subprocess.Popen[bytes]:
    command = Path(sys.executable).parent / "corevaultd"
    port = base_url.rpartition(":")[2]
    where = ["--host", "127.0.0.1", "--port", port, "--data-dir", str(folder / "data")]
    # The caller's settings may name a real database, so the demo's server must not get them.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - the command of this environment
            [str(command), "up", *where, "--bootstrap-key", str(key_file)],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches only the demo, which then stops the server
        )


def _wait_until_ready(process: subprocess.Popen[bytes], base_url: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    with httpx.Client(transport=httpx.HTTPTransport(), timeout=5.0) as client:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise DemoFailed(f"The server ended at once. The end of its log:\n{_tail(log)}")
            try:
                if client.get(f"{base_url}/health/ready").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
    raise DemoFailed(f"The server was not ready after {_READY_SECONDS:.0f} s. The end of its log:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)  # a separate session, so only processes of the server
        process.wait()
        raise DemoFailed("The server did not end on SIGTERM.") from error
