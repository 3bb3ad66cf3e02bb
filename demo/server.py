"""A Corevault of one's own: ``corevaultd up`` on a free loopback port, ended whatever happens."""

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
    """Where it listens, and the admin key that it made for itself."""

    base_url: str
    admin_key: str


@contextmanager
def running_server(folder: Path) -> Iterator[Server]:
    """Starts the server with its data in ``folder``; on leaving, SIGTERM and a wait, also after Ctrl-C.

    Raises ``DemoFailed`` where it does not become ready, or has to be killed.
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
    # Settings of the caller's own could name a real database: the demo's server must not see them.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
    with log.open("wb") as output:
        return subprocess.Popen(  # noqa: S603 - our own command, found beside our own interpreter
            [str(command), "up", *where, "--bootstrap-key", str(key_file)],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the demo, which then ends the server in order
        )


def _wait_until_ready(process: subprocess.Popen[bytes], base_url: str, log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    with httpx.Client(transport=httpx.HTTPTransport(), timeout=5.0) as client:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise DemoFailed(f"The server ended at once. Its last words:\n{_tail(log)}")
            try:
                if client.get(f"{base_url}/health/ready").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
    raise DemoFailed(f"The server was not ready after {_READY_SECONDS:.0f} s. Its last words:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired as error:
        os.killpg(process.pid, signal.SIGKILL)  # its own session, so nobody else's processes
        process.wait()
        raise DemoFailed("The server did not end on SIGTERM.") from error
