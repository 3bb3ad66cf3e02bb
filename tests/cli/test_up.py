"""``corevaultd up`` in real processes on a free port."""

import os
import signal
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

    def role_of(self, key: str) -> str:
        answer = self.client.get("/v1/me", headers={"Authorization": f"Bearer {key}"})
        return str(answer.json()["role"])

    def list_workers(self) -> list[tuple[str, int]]:
        """List state and running jobs of each worker."""
        key = {"Authorization": f"Bearer {self.key_file.read_text()}"}
        items = self.client.get("/v1/workers", headers=key).json()["items"]
        return [(each["state"], each["running_jobs"]) for each in items]

    def close(self) -> None:
        super().close()
        self.client.close()


def test_up_restarts_children_and_continues_after_ctrl_c(tmp_path: Path) -> None:
    """The second start has the key and the data of the first."""
    folder = tmp_path / "data"
    with closing(Running(folder)) as first:
        eventually(first.ready, "it never became ready")
        key = first.key_file.read_text()
        assert first.key_file.stat().st_mode & 0o777 == 0o600
        assert first.role_of(key) == "admin"
        _check_restart(first)
        _check_ctrl_c(first)
    with closing(Running(folder)) as second:
        eventually(second.ready, "it never became ready again")
        assert second.key_file.read_text() == key
        assert second.role_of(key) == "admin"
        # A worker that was killed is still listed. A stopped worker is not.
        eventually(lambda: len(second.list_workers()) == 2, "its worker gave no sign of life")
        _check_kill(second)


def _check_restart(running: Running) -> None:
    """W10: a process that dies is restarted."""
    before = running.children()
    assert {os.getpgid(child) for child in before} == {running.process.pid}
    eventually(lambda: running.log().count("worker ready") == 1, "its worker never became ready")
    eventually(lambda: running.list_workers() == [("alive", 0)], "its worker gave no sign of life")
    for child in before:
        os.kill(child, signal.SIGKILL)
    eventually(lambda: len(set(running.children()) - set(before)) == 2, "the killed processes were not restarted")
    eventually(running.ready, "it was not ready again")
    eventually(lambda: running.log().count("worker ready") == 2, "its worker was not ready again")
    eventually(lambda: len(running.list_workers()) == 2, "the new worker gave no sign of life")


def _check_ctrl_c(running: Running) -> None:
    """A stop leaves only data, and no library writes to the terminal.

    The terminal signals every process of the group.
    """
    family = descendants(running.process.pid)
    os.killpg(running.process.pid, signal.SIGINT)
    assert running.process.wait(PATIENCE_SECONDS) == 0
    assert not [pid for pid in family if alive(pid)]
    assert {file.name for file in running.folder.iterdir()} == {
        "admin.key", "broker", "corevault.sqlite3", "keys", "storage",
    }  # fmt: skip
    left = list(running.temporary.iterdir())
    assert len(left) <= 1, running.log()  # that of the worker that was killed
    assert not [file for file in running.folder.rglob("*") if file.is_socket() or file.suffix in {".pid", ".lock"}]
    assert running.process.stdout is not None
    shown = running.process.stdout.read() + running.log()
    assert "worker is stopping" in shown
    assert "MainProcess" not in shown
    assert "Traceback" not in shown


def _check_kill(running: Running) -> None:
    """W1: the process that can decrypt does not continue without its supervisor."""
    family = descendants(running.process.pid)
    assert len(family) >= 2
    running.process.kill()
    eventually(lambda: not [pid for pid in family if alive(pid)], "a child outlived its parent")
