"""``corevaultd up`` in real processes on a free port."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.cli.daemons import PATIENCE_SECONDS, Daemon, alive, descendants, eventually

pytestmark = pytest.mark.process


class Running(Daemon):
    """A running ``corevaultd up``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key_file = folder / "admin.key"
        where = ("--data-dir", str(folder), "--bootstrap-key", str(self.key_file))
        super().__init__(folder.parent, ("up", "--port", "0", *where))
        self.client = httpx.Client(base_url=self.address, timeout=PATIENCE_SECONDS, verify=False)

    def children(self) -> list[int]:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(child) for child in listed.split()]

    def close(self) -> None:
        super().close()
        self.client.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with closing(Running(tmp_path / "data")) as running:
        yield running


def test_up_serves_restarts_children_and_leaves_only_data(running: Running) -> None:
    """W10: a process that dies is restarted; a stop leaves no process, lock, socket or pid file."""
    eventually(running.ready, "it never became ready")
    key = running.key_file.read_text()
    assert running.key_file.stat().st_mode & 0o777 == 0o600
    answer = running.client.get("/v1/me", headers={"Authorization": f"Bearer {key}"})
    assert answer.json()["role"] == "admin"

    before = running.children()
    assert {os.getpgid(child) for child in before} == {running.process.pid}
    for child in before:
        os.kill(child, signal.SIGKILL)
    eventually(lambda: len(set(running.children()) - set(before)) == 2, "the killed processes were not restarted")
    eventually(running.ready, "it was not ready again")
    family = descendants(running.process.pid)

    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE_SECONDS) == 0
    assert not [pid for pid in family if alive(pid)]
    assert {file.name for file in running.folder.iterdir()} == {
        "admin.key", "broker", "corevault.sqlite3", "keys", "storage",
    }  # fmt: skip
    assert len(list(running.temporary.iterdir())) <= 1  # that of the worker that was killed
    assert not [file for file in running.folder.rglob("*") if file.is_socket() or file.suffix in {".pid", ".lock"}]


def test_children_of_a_killed_up_end_and_key_file_stays(tmp_path: Path) -> None:
    """W1: the process that can decrypt does not continue without its supervisor."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "admin.key").write_text("mine")
    with closing(Running(folder)) as running:
        eventually(running.ready, "it never became ready")
        assert (folder / "admin.key").read_text() == "mine"
        family = descendants(running.process.pid)
        assert len(family) >= 2
        running.process.kill()
        eventually(lambda: not [pid for pid in family if alive(pid)], "a child outlived its parent")


def test_ctrl_c_ends_up_without_output_of_libraries(running: Running) -> None:
    """The terminal signals every process of the group, and no library writes to it."""
    eventually(running.ready, "it never became ready")
    eventually(lambda: "worker ready" in running.log(), "its worker never became ready")
    os.killpg(running.process.pid, signal.SIGINT)
    assert running.process.wait(PATIENCE_SECONDS) == 0
    assert running.process.stdout is not None
    shown = running.process.stdout.read() + running.log()
    assert "worker is stopping" in shown
    assert "MainProcess" not in shown
    assert "Traceback" not in shown
