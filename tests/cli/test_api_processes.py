"""``corevaultd api --processes 2``: its processes share the port, the stop and the metrics."""

import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.cli import several as several_processes
from app.cli.commands import cli
from app.config import Settings
from tests.cli.daemons import PATIENCE_SECONDS, Daemon, alive, descendants, eventually

pytestmark = [pytest.mark.process, pytest.mark.sqlite]

REQUESTS = 24
COUNTED = re.compile(
    r'^corevault_http_requests_total\{method="GET",route="/v1/keys",status="200"\} (\S+)$', re.MULTILINE
)


class Several(Daemon):
    """A running ``corevaultd api --processes 2`` on a new installation."""

    def __init__(self, folder: Path) -> None:
        data = folder / "data"
        for first in ("migrate", "keys"):
            assert CliRunner().invoke(cli, [first, "--data-dir", str(data)]).exit_code == 0
        keys = Settings(data_dir=data).keys_dir / "api"
        command = ("api", "--port", "0", "--data-dir", str(data), "--processes", "2")
        super().__init__(folder, command, COREVAULT_KEYS_DIR=str(keys))

    def counted(self) -> float:
        match = COUNTED.search(self.get("/metrics").text)
        return float(match[1]) if match else 0.0


@pytest.fixture
def several(tmp_path: Path) -> Iterator[Several]:
    several = Several(tmp_path)
    try:
        eventually(several.ready, "it never became ready")
        yield several
    finally:
        several.close()


def _served_by_both(several: Several, children: list[int]) -> None:
    """Check that while each process is stopped, the other one answers."""
    for stopped in children:
        os.kill(stopped, signal.SIGSTOP)
        try:
            assert several.get("/v1/keys").status_code == 200
        finally:
            os.kill(stopped, signal.SIGCONT)


def test_two_processes_share_requests_and_counts(several: Several) -> None:
    """W10: each takes requests, both report all counts, and one that dies is restarted without a lost count."""
    children = descendants(several.process.pid)
    assert len(children) == 2
    _served_by_both(several, children)
    for _ in range(REQUESTS):
        assert several.get("/v1/keys").status_code == 200
    assert [several.counted() for _ in range(8)] == [REQUESTS + 2] * 8
    os.kill(children[0], signal.SIGKILL)
    eventually(lambda: len(set(descendants(several.process.pid)) - {children[0]}) == 2, "it never came back")
    eventually(several.ready, "it was not ready again")
    assert [several.counted() for _ in range(8)] == [REQUESTS + 2] * 8


def test_stop_finishes_open_requests_and_leaves_nothing(several: Several) -> None:
    """W10: a request that is arriving at the signal is answered; then port, processes and files are gone."""
    family = descendants(several.process.pid)
    with socket.create_connection(("127.0.0.1", several.port)) as caller:
        caller.settimeout(PATIENCE_SECONDS)
        head = b"POST /v1/quotes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        caller.sendall(head + b"Authorization: Bearer cv_none\r\nExpect: 100-continue\r\n\r\n{")
        several.get("/health/live")
        several.process.send_signal(signal.SIGTERM)
        caller.sendall(b"}")
        assert b" 401 " in _answer(caller)
    assert several.process.wait(PATIENCE_SECONDS) == 0
    assert not [pid for pid in family if alive(pid)]
    assert list(several.temporary.iterdir()) == []
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", several.port)).close()


@pytest.mark.parametrize(("broker", "is_warned"), [("filesystem://", True), ("redis://127.0.0.1:1/0", False)])
def test_operator_is_warned_of_limits_for_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broker: str, is_warned: bool
) -> None:
    """Without Redis, the stated rate applies to each process."""
    monkeypatch.setattr(several_processes, "supervise", lambda children: None)
    monkeypatch.setenv("COREVAULT_BROKER_URL", broker)
    assert CliRunner().invoke(cli, ["keys", "--data-dir", str(tmp_path)]).exit_code == 0
    ended = CliRunner().invoke(cli, ["api", "--port", "0", "--processes", "2", "--data-dir", str(tmp_path)])
    assert ended.exit_code == 0
    assert ("each process counts requests by itself" in ended.stderr) is is_warned


def test_missing_keys_end_the_command_at_once(tmp_path: Path) -> None:
    ended = CliRunner().invoke(cli, ["api", "--port", "0", "--processes", "2", "--data-dir", str(tmp_path)])
    assert ended.exit_code == 1
    assert len(ended.output.splitlines()) == 1


def _answer(caller: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received.replace(b"HTTP/1.1 100 Continue\r\n\r\n", b""):
        received += caller.recv(65536)
    return received
