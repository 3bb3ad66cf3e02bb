"""Runs catchers: tests in forks of this process, and commands in separate processes.

The libraries of other projects are imported once, before the first fork. Modules of this project are imported in each
fork, from the copy of the tree.
"""

import importlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tools.mutants.mutant import Mutant

FAILED: Final = 1
"""Exit status of pytest and of commands if a check failed; others are errors of the check itself."""
_SECONDS: Final = 1800
_TIMED_OUT: Final = "Timeout (>"
"""A catcher that is only slow catches nothing. The text is that of pytest-timeout."""
_PROMISES_OF_COMMANDS: Final = {"tools/check_boundaries.py": "W7", "corevaultd audit --section filter": "W9"}
_LIBRARIES: Final = (
    *("numpy", "scipy.optimize", "scipy.stats", "scipy.special", "scipy.linalg", "pyarrow.parquet", "pyarrow.csv"),
    *("sqlalchemy.orm", "alembic.command", "fastapi", "pydantic_settings", "httpx", "celery", "dp_accounting"),
    *("opendp.prelude", "nacl.public", "structlog", "prometheus_client", "typer", "jinja2"),
)
_OPTIONS: Final = (
    *("-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", f"--timeout={_SECONDS}"),
    "--assert=plain",  # otherwise every fork would rewrite the assertions of all tests
)


def import_libraries() -> None:
    """Import the libraries of other projects that most tests need."""
    for name in _LIBRARIES:
        importlib.import_module(name)


def is_command(catcher: str) -> bool:
    """Whether the catcher is a command, and not a test."""
    return not catcher.startswith("tests/")


def run_catcher(tree: Path, catcher: str) -> tuple[int, str]:
    """Run a catcher in the copy; return its exit status and output."""
    return _run_command(tree, catcher) if is_command(catcher) else run_tests(tree, [catcher])


def run_tests(tree: Path, names: Sequence[str], *, stop: bool = True) -> tuple[int, str]:
    """Run tests in a fork; return the exit status and output of pytest, or minus the signal that ended it.

    ``stop``: whether the first failure ends the run.

    Raises:
        RuntimeError: this process has modules of the project, which a fork would not import from the copy.
    """
    if not {"app", "workers", "tests"}.isdisjoint(sys.modules):
        raise RuntimeError("the project must not be imported before a fork")
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            _become_pytest(tree, ["-x", *names] if stop else names, output.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        return status, output.read().decode(errors="replace")


def _become_pytest(tree: Path, arguments: Sequence[str], output: int) -> None:
    """Run tests in this fork, and end it."""
    status = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        for stream in (1, 2):
            os.dup2(output, stream)
        os.chdir(tree)
        os.environ |= _make_environment(tree)
        sys.path[:0] = [str(tree), str(tree / "client" / "src")]
        sys.dont_write_bytecode = True
        status = int(pytest.main([*_OPTIONS, *arguments]))
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def list_failed(output: str) -> list[str]:
    """List the tests that failed, from the output of pytest."""
    return re.findall(r"^(?:FAILED|ERROR) (tests/.*)$", output, re.MULTILINE)


def _run_command(tree: Path, catcher: str) -> tuple[int, str]:
    done = subprocess.run(
        make_command(catcher),
        cwd=tree,
        env=os.environ | _make_environment(tree),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def make_command(catcher: str) -> list[str]:
    """Make the command of a catcher that is no test; empty for an unknown one."""
    if catcher.startswith("tools/"):
        return [sys.executable, catcher]
    name, *arguments = shlex.split(catcher)
    return [sys.executable, "-c", "from app.cli import main; main()", *arguments] if name == "corevaultd" else []


def _make_environment(tree: Path) -> dict[str, str]:
    path = os.pathsep.join((str(tree), str(tree / "client" / "src")))
    return {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def judge(mutant: Mutant, status: int, output: str) -> str:
    """Judge a catcher's exit status and output: ``caught``, or the fault."""
    if status == 0:
        return "SURVIVED"
    if status != FAILED or _TIMED_OUT in output:
        return f"ERROR {status}: {' '.join(output.split())[-300:]}"
    return "caught" if _names_promise(mutant, output) else f"UNNAMED: the message does not name {mutant.promise}"


def _names_promise(mutant: Mutant, output: str) -> bool:
    """Whether the message of a failed catcher names the promise."""
    if mutant.catcher.startswith("corevaultd audit"):
        return "REFUTED" in output
    named = re.search(rf"(?<![a-z0-9]){mutant.promise}(?![0-9])", output, re.IGNORECASE)
    return named is not None or _PROMISES_OF_COMMANDS.get(mutant.catcher) == mutant.promise
