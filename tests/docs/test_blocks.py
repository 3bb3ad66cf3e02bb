"""Code blocks of documents: languages, shell commands that exist, and Python that compiles."""

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator

import pytest
import typer.main

from app.cli.commands import cli as corevaultd
from tests.docs.blocks import PAGES, ROOT, Block, read_blocks

BLOCKS = [block for page in PAGES for block in read_blocks(page)]
SHELL = [block for block in BLOCKS if block.language == "sh"]
MAKEFILE = (ROOT / "Makefile").read_text()
SCRIPTS = {
    name
    for file in ("pyproject.toml", "client/pyproject.toml")
    for name in tomllib.loads((ROOT / file).read_text())["project"]["scripts"]
}
OF_SYSTEM = {"curl", "docker", "grep", "python", "python3", "pytest", "umask"}


def _list_commands(code: str) -> Iterator[list[str]]:
    """List the words of each command, without comments. A pipe or a semicolon begins a new command."""
    lexer = shlex.shlex(code.replace("\\\n", " "), posix=True, punctuation_chars="|;&\n")
    lexer.whitespace = " \t"
    command: list[str] = []
    for word in lexer:
        if set(word) <= set("|;&\n"):
            yield command
            command = []
        else:
            command.append(word)
    yield command


def _read_commands(block: Block) -> list[list[str]]:
    return [command for command in _list_commands(block.code) if command]


def test_there_are_blocks_of_each_kind() -> None:
    assert len(SHELL) > 10
    assert sum(block.language == "python" for block in BLOCKS) > 20


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_states_its_language(block: Block) -> None:
    assert block.language in {"python", "sh", "text"}


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_a_shell_block_parses(block: Block) -> None:
    shell = shutil.which("bash")
    assert shell is not None
    assert subprocess.run([shell, "-n", "-c", block.code], check=False, capture_output=True).stderr == b""


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_commands_of_a_shell_block_exist(block: Block) -> None:
    for command in _read_commands(block):
        name = command[0].removeprefix(".venv/bin/")
        assert name in SCRIPTS | OF_SYSTEM | {"make"}, command
        if name == "make":
            assert set(command[1:2]) <= set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)), command
        if name == "corevaultd":
            _check_options(command)
        if name == "pytest":
            assert [path for path in command[1:] if not (ROOT / path).exists()] == []


def _check_options(command: list[str]) -> None:
    """Check a subcommand of ``corevaultd`` and the names of its options."""
    here = typer.main.get_command(corevaultd)
    known = {option for each in here.params for option in each.opts}
    for word in command[1:]:
        below = getattr(here, "commands", {})
        if word in below:
            here = below[word]
            known = {option for each in here.params for option in [*each.opts, *each.secondary_opts]}
        else:
            assert not word.startswith("--") or word in known, command
    assert not getattr(here, "commands", {}) or here.name == "keys", command


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "python"], ids=str)
def test_a_python_block_compiles(block: Block) -> None:
    compile(block.code, str(block), "exec")
