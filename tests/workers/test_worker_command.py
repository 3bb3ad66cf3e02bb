"""The command lines of ``corevault-worker`` and ``corevault-ingest``, and wrong settings."""

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
def test_wrong_setting_is_reported_in_one_line_without_its_value(
    name: str, value: str, named: str, tmp_path: Path
) -> None:
    settings = {"COREVAULT_DATA_DIR": str(tmp_path), f"COREVAULT_{name}": value}
    others = {name: value for name, value in os.environ.items() if not name.startswith("COREVAULT_")}
    process = subprocess.run(
        [str(WORKER)], env=others | settings, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
    )
    assert process.returncode == 1
    assert process.stderr.startswith("corevault-worker: ")
    assert named in process.stderr
    assert len(process.stderr.splitlines()) == 1
    assert value not in process.stderr + process.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["corevault-worker", "corevault-ingest"])
@pytest.mark.parametrize(
    ("arguments", "status", "output"),
    [
        (["--help"], 0, "usage: "),
        (["--version"], 0, version("corevault-server")),
        (["--frobnicate"], 2, "unrecognized arguments: --frobnicate"),
        (["frobnicate"], 2, "frobnicate"),
    ],
    ids=["help", "version", "option", "argument"],
)
def test_command_line_is_answered_and_nothing_is_written(
    name: str, arguments: list[str], status: int, output: str, tmp_path: Path
) -> None:
    process = subprocess.run(
        [str(WORKER.with_name(name)), *arguments],
        input="",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert process.returncode == status
    assert output in (process.stderr if status else process.stdout)
    assert name in process.stdout + process.stderr
    assert list(tmp_path.iterdir()) == []
