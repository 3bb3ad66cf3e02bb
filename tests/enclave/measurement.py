"""Measures one run of the parsing process: its verdict, processor time and memory."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from support.vault import Vault
from tests.enclave.test_ingest_process import make_instructions

_LAUNCHER = """
import json, os, resource, subprocess, sys
instructions = json.load(sys.stdin) | {"parent": os.getpid()}
text = json.dumps(instructions).encode()
output = subprocess.run(sys.argv[1:], input=text, stdout=subprocess.PIPE, check=True).stdout
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([json.loads(output), usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""
"""A small program, because a process starts with the memory peak of the process that starts it."""


@dataclass(frozen=True)
class Run:
    """A run's cost; ``word`` is the verdict, or the reason of a rejection."""

    word: str
    seconds: float
    peak_kib: int


def measure(vault: Vault, data: bytes, media_type: str, **changes: object) -> Run:
    """Ingest ``data``, and check that a rejection leaves the vault unchanged."""
    instructions = replace(make_instructions(vault, data, media_type), **changes)  # type: ignore[arg-type]
    before = set(vault.files())
    launcher = subprocess.run(
        [sys.executable, "-ISc", _LAUNCHER, Path(sys.executable).with_name("corevault-ingest")],
        input=instructions.to_json(),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    verdict, seconds, peak = json.loads(launcher.stdout)
    if verdict["verdict"] != "ready":
        assert set(vault.files()) == before
    return Run(str(verdict.get("reason", verdict["verdict"])), seconds, peak)
