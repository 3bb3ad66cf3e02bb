"""``corevault-worker`` as an operator starts it by hand, where something is not as it should be."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(sys.executable).parent / "corevault-worker"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value", "named"),
    [("LEASE_SECONDS", "canary-7461", "COREVAULT_LEASE_SECONDS"), ("KEYS_DIR", "canary-7461", "opening.key")],
)
def test_what_an_operator_can_mend_is_one_line_without_values(
    name: str, value: str, named: str, tmp_path: Path
) -> None:
    ours = {"COREVAULT_DATA_DIR": str(tmp_path), f"COREVAULT_{name}": value}
    others = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
    ended = subprocess.run(
        [str(WORKER)], env=others | ours, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("corevault-worker: ")
    assert named in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert value not in ended.stderr + ended.stdout
