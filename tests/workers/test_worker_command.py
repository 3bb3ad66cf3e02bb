"""``corevault-worker`` as an operator starts it by hand, where something is not as it should be."""

import os
import subprocess
import sys
from importlib.metadata import version
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


@pytest.mark.parametrize("name", ["corevault-worker", "corevault-ingest"])
@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--help"], 0, "usage: "),
        (["--version"], 0, version("corevault-server")),
        (["--frobnicate"], 2, "unrecognized arguments: --frobnicate"),
        (["frobnicate"], 2, "frobnicate"),
    ],
    ids=["help", "version", "option", "argument"],
)
def test_a_command_line_is_answered_in_words(
    name: str, arguments: list[str], status: int, said: str, tmp_path: Path
) -> None:
    """And nothing is begun."""
    ended = subprocess.run(
        [str(WORKER.with_name(name)), *arguments],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert ended.returncode == status
    assert said in (ended.stderr if status else ended.stdout)
    assert name in ended.stdout + ended.stderr
    assert list(tmp_path.iterdir()) == []
