"""The command ``corevaultd audit``: an audit on simulated tables, printed as tables or as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import typer

from app.cli.installed_code import describe_code
from app.config import Settings
from app.inference.audit.mechanism import CONFIDENCE, DELTA
from app.inference.audit.report import CHANCE, SECTIONS, Record, Size
from app.vault.keys import RELEASE, read_secret_key
from app.vault.signing import Signer


def report(size: Size, sections: Sequence[str], *, as_json: bool) -> dict[str, list[Record]]:
    """Run the sections, print their records and return them."""
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
    return found


def count_failures(found: Mapping[str, Sequence[Record]]) -> int:
    """Count the claims that an attack refuted."""
    return sum(not record["holds"] for records in found.values() for record in records)


def sign_statement(
    settings: Settings, size: Size, found: Mapping[str, Sequence[Record]], commit: str | None
) -> dict[str, Any]:
    """Sign the statement of an audit with the release key, which also signs certificates.

    It contains all records with their raw counts, also of failures, and digests of the installed code.

    Raises:
        VaultError: the release key is missing or damaged.
    """
    statement = {
        "kind": "privacy-audit",
        "code": describe_code(commit),
        "plan": {
            "size": asdict(size),
            "sections": list(found),
            "confidence": CONFIDENCE,
            "delta": DELTA,
            "chance": CHANCE,
        },
        "failures": count_failures(found),
        "records": json.loads(json.dumps(found, default=float)),
    }
    return Signer(read_secret_key(settings.keys_dir / RELEASE)).sign(statement)


def describe(record: Record) -> str:
    """Write a record in one line; numbers have four digits."""
    parts = [f"{name} {_show(value)}" for name, value in record.items() if name != "holds"]
    return f"{'holds  ' if record['holds'] else 'REFUTED'} {', '.join(parts)}"


def _show(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
