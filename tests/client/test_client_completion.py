"""Completion scripts of the command line."""

import shutil
import subprocess
from pathlib import Path

import pytest
from corevault.cli.commands import COMMANDS
from corevault.cli.completion import SHELLS
from corevault.cli.main import main


def read_script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["qu"], {"quote"}),
        (["v"], {"verify", "verify-audit", "verify-ledger"}),
        (["--ver"], {"--version"}),
        (["quote", "ds_1", "--eps"], {"--epsilon"}),
        (["quote", "ds_1", "--family", "p"], {"probit-regression", "poisson-regression"}),
        (["audit-log", "--outcome", "re"], {"refused"}),
        (["watch", "--eps"], set()),
        (["completion", "''"], {"bash", "zsh", "fish"}),
        (["completion", "z"], {"zsh"}),
    ],
)
def test_bash_completes_commands_options_and_values(
    words: list[str], expected: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    line = f'COMP_WORDS=(corevault {" ".join(words)}); COMP_CWORD={len(words)}; _corevault; echo "${{COMPREPLY[*]}}"'
    script = f"{read_script('bash', capsys)}\n{line}"
    ran = subprocess.run([bash, "--norc", "-uc", script], capture_output=True, text=True, check=True)
    assert set(ran.stdout.split()) == expected


def test_bash_itself_completes_names_of_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A name with a space stays one word."""
    (tmp_path / "my table.csv").touch()
    line = (
        "COMP_WORDS=(corevault upload ds_1 my); COMP_CWORD=3; _corevault; echo ${#COMPREPLY[@]}; complete -p corevault"
    )
    script = f"{read_script('bash', capsys)}\n{line}"
    ran = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    count, rule = ran.stdout.splitlines()
    assert (count, "-o default" in rule) == ("0", True)


def test_fish_completes_the_names_of_shells(capsys: pytest.CaptureFixture[str]) -> None:
    rule = "complete -c corevault -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'"
    assert rule in read_script("fish", capsys).splitlines()


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = read_script(shell, capsys)
    assert all(f" {name}" in script for name in COMMANDS)
    assert "max-null-share" in script


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["completion", "tcsh"])
    assert end.value.code == 2
    assert "[usage]" in capsys.readouterr().err
