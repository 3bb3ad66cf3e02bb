"""Messages of errors that callers read are sentences."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from app import errors

ROOT = Path(__file__).parents[2]
CLASSES = {name for name, each in vars(errors).items() if isinstance(each, type) and issubclass(each, Exception)}
SENTENCE = re.compile(r"([A-Z]|\{\}).*[.}']", re.DOTALL)


def _read_text(node: ast.expr) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _find_messages(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
        if name == "Forbidden.to":  # makes its sentence from roles
            continue
        if isinstance(node, ast.Call) and (name == "Fault" or name.split(".")[0] in CLASSES):
            arguments = node.args[1:2] if name == "Fault" or name.endswith(".at") else node.args[:1]
            yield from filter(None, map(_read_text, arguments))


def test_messages_of_errors_are_sentences() -> None:
    paths = [*(ROOT / "app").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]
    messages = [message for path in paths if "surrogate" not in path.parts for message in _find_messages(path)]
    assert len(messages) > 100
    assert [message for message in messages if not SENTENCE.fullmatch(message)] == []
