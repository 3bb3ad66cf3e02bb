"""The command of the broker's container, unchanged, on a real Redis."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from support.processes import free_port
from tests.deploy.test_compose import SERVICES
from tests.e2e.house import until

pytestmark = pytest.mark.services
PASSWORD = "0123456789abcdef"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    (tmp_path / "redis_password").write_text(PASSWORD + "\n")
    port = free_port()
    *shell, script = SERVICES["redis"]["command"]
    script = script.replace("$$", "$").replace("/run/secrets", str(tmp_path))
    script = script.replace("--save ''", f"--save '' --bind 127.0.0.1 --port {port}")
    with subprocess.Popen([*shell, script], cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        until(lambda: answers(port), 20)
        yield process, port
        process.kill()


def answers(port: int) -> bool:
    try:
        return bool(redis.Redis(port=port, password=PASSWORD).ping())
    except redis.ConnectionError:
        return False


def test_the_broker_needs_the_password_and_no_argument_shows_it(
    server: tuple["subprocess.Popen[bytes]", int],
) -> None:
    process, port = server
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=port).ping()
    assert PASSWORD.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()


def test_the_broker_is_the_first_process_and_ends_on_a_signal(server: tuple["subprocess.Popen[bytes]", int]) -> None:
    """A shell as first process would ignore the signal until the kill."""
    process, _ = server
    assert Path(f"/proc/{process.pid}/comm").read_text().strip() == "redis-server"
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 0
