"""``corevaultd verify``: checks chains, balances, certificates, representations, keys and the high-water mark.

It recomputes hashes, balances and signatures from the stored data, and changes nothing.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import typer
from sqlalchemy import make_url

from app.audit import chain
from app.auth.service import Keys
from app.cli.failures import FAILED
from app.config import Settings
from app.db import Database, ReadSession, make_engine
from app.db.migrations import is_at_head
from app.errors import CorevaultError
from app.ledger import Ledger
from app.ledger.integrity.high_water_mark import HighWaterMark
from app.releases import proof
from app.vault.keys import ApiKeys, load_api_keys
from app.vault.marks import open_marks
from app.vault.signing import KeyRing, Signer
from app.vault.store import ObjectStore
from app.vault.stores import open_store


@dataclass(frozen=True, slots=True)
class Finding:
    """A failed check: the kind of object, its id, and the fault."""

    kind: str
    id: str
    finding: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}: {self.finding}" if self.id else f"{self.kind}: {self.finding}"


def verify(settings: Settings, *, storage: bool, mark: bool) -> Iterator[Finding]:
    """Yield the failed checks.

    If ``storage`` is False, stored representations are not checked. If ``mark`` is False, the high-water mark is not.
    """
    keys = load_api_keys(settings.keys_dir)
    with Database(make_engine(settings.database_url)) as database:
        if not is_at_head(database.engine):
            yield Finding("database", "", "it is not migrated to this version; run 'corevaultd migrate'")
            return
        store = None
        if storage:
            try:
                store = open_store(settings.released_url)
            except CorevaultError:
                yield Finding("storage", "", "it cannot be reached; --no-storage skips it")
        with database.read() as session:
            if mark:
                yield from _check_mark(session, keys, settings)
            yield from _check_database(session, keys, settings.max_epsilon, store)
            for key_id in Keys(keys.identity_key).list_unsealed(session):
                yield Finding(
                    "key", key_id, "it was altered or added in the database, or has an old form; it is not accepted"
                )


def _check_mark(session: ReadSession, keys: ApiKeys, settings: Settings) -> Iterator[Finding]:
    """Check that the database contains everything that the high-water mark records."""
    signer = Signer(keys.ledger_seed, keys.ledger_retired, keys.ledger_until)
    try:
        HighWaterMark(open_marks(settings.mark_url), signer).check(session)
    except CorevaultError as error:
        yield Finding("mark", "", error.detail)


def _check_database(
    session: ReadSession, keys: ApiKeys, max_epsilon: float, store: ObjectStore | None
) -> Iterator[Finding]:
    signer = Signer(keys.ledger_seed, keys.ledger_retired, keys.ledger_until)
    for account_id in Ledger(signer, max_epsilon).verify(session):
        yield Finding("account", account_id, "its chain, checkpoints, balance or index are not valid")
    for release_id, fault in proof.find_faults(session, KeyRing([keys.release_public, *keys.release_retired]), store):
        yield Finding("release", release_id, fault)
    for fault in chain.find_faults(session, signer.ring):
        yield Finding("audit log", "", fault)


def name_database(database_url: str) -> str:
    """Name the database, without credentials."""
    url = make_url(database_url)
    if url.host is None:
        return f"{url.get_backend_name()} database {url.database}"
    return f"{url.get_backend_name()} database {url.database} on {url.host}"


def report(settings: Settings, *, storage: bool, mark: bool, as_json: bool) -> None:
    """Print the findings, and exit with status 1 if there are any.

    Each finding is one line. With ``as_json``, all findings are one JSON object. The folder and the database are
    printed to standard error, so that an operator notices if they are the wrong ones.
    """
    typer.echo(f"checking {settings.data_dir.resolve()} and {name_database(settings.database_url)}", err=True)
    findings = list(verify(settings, storage=storage, mark=mark))
    if as_json:
        typer.echo(json.dumps({"holds": not findings, "findings": [asdict(each) for each in findings]}))
    else:
        for each in findings:
            typer.echo(str(each))
        if not findings:
            skipped = [name for name, is_checked in (("storage", storage), ("mark", mark)) if not is_checked]
            typer.echo("; skipped: ".join(["all checks passed", *filter(None, [", ".join(skipped)])]))
    if findings:
        raise typer.Exit(FAILED)
