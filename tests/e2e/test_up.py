"""`corevaultd up` as an operator meets it: the key file, the end, what is left behind."""

import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.e2e.house import SCRIPTS, House, until


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_up_ends_its_children_and_leaves_only_the_data(tmp_path: Path, end: signal.Signals) -> None:
    house = House(tmp_path)
    house.wait_ready()
    assert stat.S_IMODE(house.key_file.stat().st_mode) == 0o600
    key = house.key_file.read_text()
    assert key.startswith("cv_")
    assert key == key.strip()
    with house.client(key) as admin:
        assert admin.get("/v1/me").json()["role"] == "admin"
    members = house.group()
    assert len(members) >= 3
    house.process.send_signal(end)
    assert house.process.wait(timeout=30) == 0
    until(lambda: not house.group(), 10)
    left = [path.name for path in tmp_path.rglob("*") if path.suffix in {".pid", ".lock", ".sock"}]
    assert left == []
    assert not any(path.is_socket() or path.is_fifo() for path in tmp_path.rglob("*"))
    assert not any(name in path.name for path in tmp_path.rglob("*") for name in ("-wal", "-shm"))


def test_up_keeps_an_existing_key_and_its_data(tmp_path: Path) -> None:
    first = House(tmp_path)
    first.wait_ready()
    key = first.key_file.read_text()
    assert first.stop() == 0
    second = House(tmp_path)
    second.wait_ready()
    try:
        assert second.key_file.read_text() == key
        with second.client(key) as admin:
            assert admin.get("/v1/me").status_code == 200
    finally:
        second.stop()


def test_up_refuses_to_show_itself_to_a_network_in_the_clear(tmp_path: Path) -> None:
    arguments = ["up", "--host", "0.0.0.0", "--data-dir", str(tmp_path / "data")]
    ended = subprocess.run([SCRIPTS / "corevaultd", *arguments], capture_output=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert b"TLS" in ended.stderr + ended.stdout
