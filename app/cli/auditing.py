"""The command ``corevaultd audit``: an audit on simulated tables, printed as tables or as JSON."""

import json
from collections.abc import Sequence
from typing import Any

import typer

from app.inference.audit.report import SECTIONS, Record, Size


def report(size: Size, sections: Sequence[str], *, as_json: bool) -> bool:
    """Run the sections and print their records; return whether all claims hold."""
    found: dict[str, list[Record]] = {}
    for name in sections:
        found[name] = []
        if not as_json:
            typer.echo(f"{name}")
        for record in SECTIONS[name](size):
            found[name].append(record)
            if not as_json:
                typer.echo(f"  {describe(record)}")
    if as_json:
        typer.echo(json.dumps(found, default=float))
    return all(record["holds"] for records in found.values() for record in records)


def describe(record: Record) -> str:
    """Write a record in one line; numbers have four digits."""
    parts = [f"{name} {_show(value)}" for name, value in record.items() if name != "holds"]
    return f"{'holds  ' if record['holds'] else 'REFUTED'} {', '.join(parts)}"


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
