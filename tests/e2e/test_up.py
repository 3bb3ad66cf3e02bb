"""`corevaultd up`, started twice on one folder.

tests/cli/test_up.py tests its processes.
"""

import signal
from pathlib import Path

import pytest

from tests.e2e.house import House, until

pytestmark = pytest.mark.process


def test_up_ends_on_ctrl_c_and_continues_with_the_same_key_and_data(tmp_path: Path) -> None:
    first = House(tmp_path)
    first.wait_ready()
    key = first.key_file.read_text()
    first.process.send_signal(signal.SIGINT)
    assert first.process.wait(timeout=30) == 0
    until(lambda: not first.group(), 10)
    second = House(tmp_path)
    try:
        second.wait_ready()
        assert second.key_file.read_text() == key
        with second.client(key) as admin:
            assert admin.get("/v1/me").json()["role"] == "admin"
    finally:
        second.stop()
