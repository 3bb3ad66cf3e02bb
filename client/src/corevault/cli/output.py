"""Results of commands: a table for people, JSON for programs, or ids alone for scripts."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from corevault._show import Table, format_value
from corevault.pages import Page
from corevault.replies._decode import Reply


@dataclass(frozen=True)
class Output:
    """The form of results. ``quiet`` prints ids only; ``as_json`` prints JSON objects."""

    as_json: bool = False
    quiet: bool = False
    stream: TextIO | None = None

    @property
    def shows_progress(self) -> bool:
        """Whether a bar on standard error would be seen."""
        return sys.stderr.isatty() and not self.quiet

    def show(self, reply: Reply, *, name: str = "id") -> None:
        """Prints one object; ``name`` is the member that ``quiet`` prints."""
        if self.as_json:
            self.write(json.dumps(reply.raw, ensure_ascii=False))
        elif self.quiet:
            self.write(str(getattr(reply, name)))
        else:
            self._show_facts(reply.facts())

    def show_table(self, reply: Reply, rows: Sequence[Mapping[str, Any]], *, name: str) -> None:
        """Prints one object as a table; ``name`` is the column that ``quiet`` prints."""
        if self.as_json:
            self.write(json.dumps(reply.raw, ensure_ascii=False))
        else:
            self.show_rows(rows, name=name)

    def show_list(self, page: Page[Any], limit: int) -> None:
        """Prints at most ``limit`` objects of a list, page by page."""
        replies = [reply for _, reply in zip(range(limit), page, strict=False)]
        if self.as_json:
            self.write(json.dumps([reply.raw for reply in replies], ensure_ascii=False))
        elif self.quiet:
            self._write_lines(reply.id for reply in replies)
        elif replies:
            self.write(str(Table([reply.facts() for reply in replies])))
        else:
            say("There are no entries.")

    def show_rows(self, rows: Sequence[Mapping[str, Any]], *, name: str) -> None:
        """Prints a table; ``name`` is the column that ``quiet`` prints."""
        if self.as_json:
            self.write(json.dumps(rows, ensure_ascii=False))
        elif self.quiet:
            self._write_lines(format_value(row[name]) for row in rows)
        else:
            self.write(str(Table(rows)))

    def show_facts(self, facts: Mapping[str, Any], *, name: str) -> None:
        """Prints names and values; ``quiet`` prints the value of ``name``."""
        if self.as_json:
            self.write(json.dumps(dict(facts), ensure_ascii=False))
        elif self.quiet:
            self.write(format_value(facts[name]))
        else:
            self._show_facts(facts)

    def _show_facts(self, facts: Mapping[str, Any]) -> None:
        shown = {name: format_value(value) for name, value in facts.items() if value not in (None, "", ())}
        width = max((len(name) for name in shown), default=0)
        self._write_lines(f"{name.ljust(width)}   {value}" for name, value in shown.items())

    def _write_lines(self, lines: Iterable[str]) -> None:
        text = "\n".join(lines)
        if text:
            self.write(text)

    def write(self, text: str) -> None:
        """Prints a text as it is."""
        (self.stream or sys.stdout).write(f"{text}\n")


def say(sentence: str) -> None:
    """Prints a sentence to standard error.

    Control characters, which can come from a file or a server, are replaced.
    """
    sys.stderr.write("".join(sign if sign.isprintable() else "�" for sign in sentence) + "\n")
