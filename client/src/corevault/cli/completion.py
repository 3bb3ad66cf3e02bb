"""Completion scripts of shells: names of commands and options, and the values that an option can have."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from corevault.cli.parsing import FAMILIES, Parser

_BASH: Final = """_corevault() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" options="" arguments=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "{names} --help --version" -- "$current"))
    return
  fi
  case "$previous" in
{values}
  esac
  case "${{COMP_WORDS[1]}}" in
{options}
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$options" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$arguments" -- "$current")) ;;
  esac
}}
complete -o default -F _corevault corevault"""
"""Without a word to offer, the shell completes names of files itself, also those with spaces."""


def write_script(shell: str, commands: Mapping[str, Parser]) -> str:
    """The script of ``shell``, which is one of ``SHELLS``, for commands by name."""
    return SHELLS[shell](commands)


def _write_bash(commands: Mapping[str, Parser]) -> str:
    values = {
        f'    {option}) COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$current")); return ;;'
        for parser in commands.values()
        for option, words in _list_values(parser)
    }
    options = (
        f'    {name}) options="{" ".join(flag for each in parser.options for flag in each.option_strings)}"'
        f"{_assign_arguments(parser)} ;;"
        for name, parser in commands.items()
    )
    return _BASH.format(names=" ".join(commands), values="\n".join(sorted(values)), options="\n".join(options))


def _assign_arguments(parser: Parser) -> str:
    return f' arguments="{" ".join(parser.choices)}"' if parser.choices else ""


def _write_zsh(commands: Mapping[str, Parser]) -> str:
    return f"autoload -U +X compinit bashcompinit && compinit && bashcompinit\n{_write_bash(commands)}"


def _write_fish(commands: Mapping[str, Parser]) -> str:
    return "\n".join(_list_fish_lines(commands))


def _list_fish_lines(commands: Mapping[str, Parser]) -> Iterator[str]:
    for name, parser in commands.items():
        yield f"complete -c corevault -n __fish_use_subcommand -f -a {name} -d {_quote(parser.description or '')}"
        if parser.choices:
            words = _quote(" ".join(parser.choices))
            yield f"complete -c corevault -n '__fish_seen_subcommand_from {name}' -f -a {words}"
        values = dict(_list_values(parser))
        for option in parser.options:
            flags = " ".join(
                f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.option_strings
            )
            listed = values.get(option.option_strings[-1])
            given = f" -x -a {_quote(' '.join(listed))}" if listed else "" if option.nargs == 0 else " -r"
            described = f" -d {_quote(option.help)}" if option.help else ""
            yield f"complete -c corevault -n '__fish_seen_subcommand_from {name}' {flags}{given}{described}"


def _list_values(parser: Parser) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield options with the values that they can have."""
    for action in parser.options:
        words = FAMILIES if action.dest == "family" else tuple(map(str, action.choices or ()))
        if words:
            yield action.option_strings[-1], words


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SHELLS: Final[Mapping[str, Callable[[Mapping[str, Parser]], str]]] = {
    "bash": _write_bash,
    "zsh": _write_zsh,
    "fish": _write_fish,
}
