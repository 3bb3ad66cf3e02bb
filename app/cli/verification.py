"""``corevaultd verify``: everything that was promised, recomputed from what is stored. Reads, changes nothing."""

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
from app.db.migrations import at_head
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
    """Something that does not hold: what kind of thing, which one, and what is wrong with it."""

    kind: str
    id: str
    finding: str

    def __str__(self) -> str:
        return f"{self.kind} {self.id}: {self.finding}" if self.id else f"{self.kind}: {self.finding}"


def verify(settings: Settings, *, storage: bool, mark: bool) -> Iterator[Finding]:
    """Every finding, as it comes up; without ``storage`` the stored representations are left out."""
    keys = load_api_keys(settings.keys_dir)
    database = Database(make_engine(settings.database_url))
    try:
        if not at_head(database.engine):
            yield Finding("database", "", "it is not migrated to this version; run 'corevaultd migrate'")
            return
        store = None
        if storage:
            try:
                store = open_store(settings.released_url)
            except CorevaultError:
                yield Finding("storage", "", "it does not answer; --no-storage leaves it out")
        with database.read() as session:
            if mark:
                yield from _of_mark(session, keys, settings)
            yield from _of_database(session, keys, settings.max_epsilon, store)
            for key_id in Keys(keys.identity_key).list_unsealed(session):
                yield Finding(
                    "key", key_id, "it was altered or added in the database, or has an old form; it is nobody's"
                )
    finally:
        database.dispose()


def _of_mark(session: ReadSession, keys: ApiKeys, settings: Settings) -> Iterator[Finding]:
    """Whether the database holds all that the high-water mark knows of."""
    signer = Signer(keys.ledger_seed, keys.ledger_retired, keys.ledger_until)
    try:
        HighWaterMark(open_marks(settings.mark_url), signer).check(session)
    except CorevaultError as error:
        yield Finding("mark", "", error.detail)


def _of_database(
    session: ReadSession, keys: ApiKeys, max_epsilon: float, store: ObjectStore | None
) -> Iterator[Finding]:
    signer = Signer(keys.ledger_seed, keys.ledger_retired, keys.ledger_until)
    for account_id in Ledger(signer, max_epsilon).verify(session):
        yield Finding("account", account_id, "its chain, checkpoints, balance or index do not hold")
    for release_id, fault in proof.findings(session, KeyRing([keys.release_public, *keys.release_retired]), store):
        yield Finding("release", release_id, fault)
    for fault in chain.findings(session, signer.ring):
        yield Finding("audit log", "", fault)


def name_of(database_url: str) -> str:
    """Which database that is, without what lets one into it."""
    url = make_url(database_url)
    if url.host is None:
        return f"{url.get_backend_name()} database {url.database}"
    return f"{url.get_backend_name()} database {url.database} on {url.host}"


def report(settings: Settings, *, storage: bool, mark: bool, as_json: bool) -> None:
    """Print the findings, one a line (or one JSON object), and end with status 1 if there is any.

    What was looked at goes to standard error: that nothing is wrong with an empty folder says little.
    """
    typer.echo(f"checking {settings.data_dir.resolve()} and {name_of(settings.database_url)}", err=True)
    found = list(verify(settings, storage=storage, mark=mark))
    if as_json:
        typer.echo(json.dumps({"holds": not found, "findings": [asdict(each) for each in found]}))
    else:
        for each in found:
            typer.echo(str(each))
        if not found:
            left_out = [name for name, checked in (("storage", storage), ("mark", mark)) if not checked]
            typer.echo("; left out: ".join(["everything holds", *filter(None, [", ".join(left_out)])]))
    if found:
        raise typer.Exit(FAILED)
