"""What one run of the parsing process says, and what it took of processor and memory."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from support.vault import Vault
from tests.enclave.test_ingest_process import instructions

_LAUNCHER = """
import json, os, resource, subprocess, sys
told = json.load(sys.stdin) | {"parent": os.getpid()}
said = subprocess.run(sys.argv[1:], input=json.dumps(told).encode(), stdout=subprocess.PIPE, check=True).stdout
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([json.loads(said), spent.ru_utime + spent.ru_stime, spent.ru_maxrss]))
"""
"""Small, since a process starts with the peak of the one that starts it."""


@dataclass(frozen=True)
class Run:
    """``word`` is the verdict, or the reason of a rejection."""

    word: str
    seconds: float
    peak_kib: int


def measured(vault: Vault, data: bytes, media_type: str, **changes: object) -> Run:
    """Ingest ``data``; what is not ready has left the vault as it was."""
    told = replace(instructions(vault, data, media_type), **changes)  # type: ignore[arg-type]
    before = set(vault.files())
    launched = subprocess.run(
        [sys.executable, "-ISc", _LAUNCHER, Path(sys.executable).with_name("corevault-ingest")],
        input=told.to_json(),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    verdict, seconds, peak = json.loads(launched.stdout)
    if verdict["verdict"] != "ready":
        assert set(vault.files()) == before
    return Run(str(verdict.get("reason", verdict["verdict"])), seconds, peak)
