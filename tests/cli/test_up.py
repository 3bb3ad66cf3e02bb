"""``corevaultd up`` as an operator runs it: real processes on an ephemeral port."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

COREVAULTD = Path(sys.executable).parent / "corevaultd"
PATIENCE_SECONDS = 90


def _eventually(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def _alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return children + [found for child in children for found in _descendants(child)]


class Running:
    """One ``corevaultd up``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.key_file = folder / "admin.key"
        command = [
            str(COREVAULTD),
            "up",
            "--port",
            "0",
            "--data-dir",
            str(folder),
            "--bootstrap-key",
            str(self.key_file),
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
        self.temporary = folder.parent / "temporary"
        self.temporary.mkdir()
        environment["TMPDIR"] = str(self.temporary)
        self.log = (folder.parent / "up.log").open("a+")
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment, process_group=0
        )
        assert self.process.stdout is not None
        found = re.search(r"http://\S+?(?=;)", self.process.stdout.readline())
        assert found is not None
        self.client = httpx.Client(base_url=found[0], timeout=PATIENCE_SECONDS)

    def ready(self) -> bool:
        try:
            return self.client.get("/health/ready").status_code == 200
        except httpx.TransportError:
            return False

    def children(self) -> list[int]:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(child) for child in listed.split()]

    def close(self) -> None:
        """End whatever a failed test left running."""
        left = [self.process.pid, *_descendants(self.process.pid)] if self.process.poll() is None else []
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()
        self.client.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with closing(Running(tmp_path / "data")) as running:
        yield running


def test_it_serves_restarts_what_dies_and_leaves_only_data_behind(running: Running) -> None:
    """W10: a process that dies comes back; a stop leaves no process, lock, socket or pid file."""
    _eventually(running.ready, "it never became ready")
    key = running.key_file.read_text()
    assert running.key_file.stat().st_mode & 0o777 == 0o600
    answer = running.client.get("/v1/me", headers={"Authorization": f"Bearer {key}"})
    assert answer.json()["role"] == "admin"

    before = running.children()
    assert {os.getpgid(child) for child in before} == {running.process.pid}
    for child in before:
        os.kill(child, signal.SIGKILL)
    _eventually(lambda: len(set(running.children()) - set(before)) == 2, "what was killed never came back")
    _eventually(running.ready, "it was not ready again")
    family = _descendants(running.process.pid)

    running.process.send_signal(signal.SIGTERM)
    assert running.process.wait(PATIENCE_SECONDS) == 0
    assert not [pid for pid in family if _alive(pid)]
    assert {file.name for file in running.folder.iterdir()} == {
        "admin.key", "broker", "corevault.sqlite3", "keys", "storage",
    }  # fmt: skip
    assert len(list(running.temporary.iterdir())) <= 1  # that of the worker that was killed
    assert not [file for file in running.folder.rglob("*") if file.is_socket() or file.suffix in {".pid", ".lock"}]


def test_nothing_outlives_a_parent_that_was_killed_and_a_key_file_that_exists_stays(tmp_path: Path) -> None:
    """W1: the process that can decrypt does not stay behind unsupervised."""
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "admin.key").write_text("mine")
    with closing(Running(folder)) as running:
        _eventually(running.ready, "it never became ready")
        assert (folder / "admin.key").read_text() == "mine"
        family = _descendants(running.process.pid)
        assert len(family) >= 2
        running.process.kill()
        _eventually(lambda: not [pid for pid in family if _alive(pid)], "a child outlived its parent")
