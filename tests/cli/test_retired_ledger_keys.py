"""W11: a retired ledger key is trusted only up to its cutoff, so a later thief can sign nothing new."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner, Result

from app.audit import chain, journal
from app.cli import installation
from app.cli.commands import cli
from app.config import Settings
from app.db import Database, make_engine
from app.errors import DependencyUnavailable, StateConflict
from app.ledger import HighWaterMark, Ledger
from app.ledger.entries import commitments
from app.ledger.entries.balance import Balance
from app.ledger.integrity import snapshots
from app.ledger.models import Account, Checkpoint
from app.vault import rotation
from app.vault.keys import load_api_keys, load_worker_keys
from app.vault.marks import MarkName, open_marks
from app.vault.signing import Signer
from tests.factories.tampering import rewrite_newest_entry
from tests.ledger.support import Bench, commitment, costing

pytestmark = pytest.mark.long


def run(*command: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(part) for part in command])


@dataclass
class Rotated:
    """An installation after a rotation, and the seed of the retired key."""

    settings: Settings
    stale: Bench  # a process from before the rotation that was not restarted
    seed: bytes
    database: Database

    @property
    def signer(self) -> Signer:
        """The signer of processes that were started after the rotation."""
        held = load_api_keys(self.settings.keys_dir / "api")
        return Signer(held.ledger_seed, held.ledger_retired, held.ledger_until)

    @property
    def thief(self) -> Signer:
        """A signer with the retired key, without any check."""
        return Signer(self.seed, [self.signer.public_key])

    def bench(self) -> Bench:
        mark = HighWaterMark(open_marks(self.settings.mark_url), self.signer)
        return Bench(self.database, Ledger(self.signer, 20.0, mark), self.stale.reserved)


@pytest.fixture
def rotated(tmp_path: Path, sqlite_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rotated]:
    monkeypatch.setenv("COREVAULT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COREVAULT_DATABASE_URL", f"sqlite:///{sqlite_file}")
    assert run("keys").exit_code == 0
    settings = Settings()
    seed = load_worker_keys(settings.keys_dir).ledger_seed
    database = Database(make_engine(settings.database_url))
    stale = Bench(database, Ledger(Signer(seed), 20.0, HighWaterMark(open_marks(settings.mark_url), Signer(seed))))
    stale.open_account("ds_a")
    stale.open_account("ds_idle", population="others")
    stale.run("job_1", costing(0.2))
    stale.reserve("job_2", costing(0.2))
    with database.write() as tx:
        journal.record_command(tx, "before")
        assert chain.extend(tx, Signer(seed)) == 1
    done = run("keys", "rotate", "ledger")
    assert done.exit_code == 0, done.output
    yield Rotated(settings, stale, seed, database)
    database.dispose()


@pytest.mark.sqlite
def test_earlier_signatures_are_valid_after_a_rotation(rotated: Rotated) -> None:
    """This also holds after another rotation with a different cutoff."""
    for _ in range(2):
        assert run("verify", "--no-storage").stdout == "all checks passed; skipped: storage\n"
        bench = rotated.bench()
        bench.checkpoint()
        bench.checkpoint("ds_idle")
        assert run("keys", "rotate", "ledger").exit_code == 0
    cutoffs = load_api_keys(rotated.settings.keys_dir / "api").ledger_until.values()
    assert len({cutoff["checkpoint"] for cutoff in cutoffs}) == len({cutoff["audit"] for cutoff in cutoffs}) == 3
    assert rotated.bench().verify() == ()


def forged_checkpoint(rotated: Rotated) -> None:
    Bench(rotated.database, Ledger(rotated.thief, 20.0)).checkpoint("ds_idle")


def forged_snapshot(rotated: Rotated) -> None:
    with rotated.database.write() as tx:
        account = tx.query(Account).filter_by(population="others").one()
        snapshots.take(rotated.thief, account, Balance.from_json(account.stored.whole()))
        account.snapshot = dict(account.snapshot)


@pytest.mark.sqlite
@pytest.mark.parametrize("forge", [forged_checkpoint, forged_snapshot])
def test_later_signature_of_a_retired_key_is_refused(rotated: Rotated, forge: Callable[[Rotated], None]) -> None:
    """W11: the content of the forgery is true, and only its signature is wrong."""
    forge(rotated)
    with rotated.database.read() as session:
        suspect = session.query(Account).filter_by(population="others").one().id
    assert rotated.bench().verify() == (suspect,)
    assert suspect in run("verify", "--no-storage").output


@pytest.mark.sqlite
def test_running_process_refuses_a_forged_snapshot(rotated: Rotated) -> None:
    """W11: the account is frozen at its next use."""
    forged_snapshot(rotated)
    with pytest.raises(StateConflict, match="frozen"):
        rotated.bench().reserve("job_3", costing(0.1), "ds_idle")


@pytest.mark.sqlite
def test_mark_of_a_retired_key_is_not_charged(rotated: Rotated) -> None:
    """W11: a forged mark could state less spending, so reconciliation freezes its account."""
    with rotated.database.read() as session:
        account = session.query(Account).filter_by(population="others").one()
        row = session.query(Checkpoint).order_by(Checkpoint.sequence.desc()).first()
    assert row is not None
    row.sequence, row.account_id, row.checkpoint_hash = row.sequence + 5, account.id, "0" * 64
    marks = open_marks(rotated.settings.mark_url)
    HighWaterMark(marks, rotated.thief).advance(row, account.stored.whole())
    name = MarkName(account.id, row.sequence, row.checkpoint_hash)
    assert HighWaterMark(marks, rotated.thief).read(name) is not None
    assert HighWaterMark(marks, rotated.signer).read(name) is None
    assert run("reconcile").output == f"{account.id}: frozen\n"


@pytest.mark.sqlite
def test_audit_head_of_a_retired_key_is_found(rotated: Rotated) -> None:
    """W11: the audit log is checked too."""
    with rotated.database.write() as tx:
        journal.record_command(tx, "forged")
        chain.extend(tx, rotated.thief)
    with rotated.database.read() as session:
        newest = chain.find_newest(session)
    assert f"audit head {newest}: the signature does not hold" in run("verify", "--no-storage").output


@pytest.mark.sqlite
def test_process_with_the_old_key_signs_and_freezes_nothing(rotated: Rotated) -> None:
    """W10, W11: it finds signatures of a key that it does not have."""
    stale = rotated.stale
    for call in (
        stale.checkpoint,
        lambda: stale.reserve("job_3", costing(0.1)),
        lambda: stale.reserve("job_4", costing(0.1), "ds_idle"),
    ):
        with pytest.raises(DependencyUnavailable, match="restart"):
            call()
    with rotated.database.write() as tx:
        journal.record_command(tx, "later")
    with pytest.raises(DependencyUnavailable, match="restart"), rotated.database.write() as tx:
        chain.extend(tx, stale.ledger.signer)
    bench = rotated.bench()
    bench.run("job_3", costing(0.1))
    assert bench.verify() == ()


@pytest.mark.sqlite
def test_cutoff_is_restored_from_an_escrow(rotated: Rotated, tmp_path: Path) -> None:
    keys = rotated.settings.keys_dir
    before = load_worker_keys(keys)
    assert len(before.ledger_until) == 1
    assert run("keys", "escrow-key", tmp_path / "escrow.key").exit_code == 0
    assert run("keys", "escrow", tmp_path / "sealed", "--recipient", tmp_path / "escrow.pub").exit_code == 0
    keys.rename(tmp_path / "lost")
    assert run("keys", "restore", tmp_path / "sealed", "--escrow-key", tmp_path / "escrow.key").exit_code == 0
    assert load_worker_keys(keys) == before
    assert load_api_keys(keys / "api").ledger_until == before.ledger_until


@pytest.mark.sqlite
def test_rotation_of_the_ledger_key_is_refused_while_up_runs(rotated: Rotated) -> None:
    before = load_worker_keys(rotated.settings.keys_dir)
    with installation.lock_folder(rotated.settings.data_dir):
        refused = run("keys", "rotate", "ledger")
    assert (refused.exit_code, "runs on" in refused.output) == (1, True)
    assert load_worker_keys(rotated.settings.keys_dir) == before


@pytest.mark.sqlite
def test_rotation_of_the_ledger_key_is_refused_behind_the_mark(rotated: Rotated, tmp_path: Path) -> None:
    """W11: the rotation signs accounts in their present state, so they must be complete."""
    with rotated.database.write() as tx:
        newest = tx.query(Checkpoint).order_by(Checkpoint.sequence.desc()).first()
        assert newest is not None
        for name in tx.connection().exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'trigger'").all():
            tx.connection().exec_driver_sql(f"DROP TRIGGER {name[0]}")
        tx.delete(newest)
    before = load_worker_keys(rotated.settings.keys_dir)
    refused = run("keys", "rotate", "ledger")
    assert (refused.exit_code, "reconcile" in refused.output) == (1, True)
    assert load_worker_keys(rotated.settings.keys_dir) == before


@pytest.mark.sqlite
def test_interrupted_rotation_leaves_the_key_in_use(rotated: Rotated, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its signatures are trusted, also after a later rotation that succeeds."""

    def full(*_: object) -> None:
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(rotation, "replace_key", full)
        assert run("keys", "rotate", "ledger").exit_code != 0
    assert load_api_keys(rotated.settings.keys_dir).ledger_until.keys() >= {rotated.signer.public_key}
    for number in range(2):
        rotated.bench().run(f"job_since_{number}", costing(0.1))
    assert run("verify", "--no-storage").stdout == "all checks passed; skipped: storage\n"
    assert run("keys", "rotate", "ledger").exit_code == 0
    assert run("verify", "--no-storage").stdout == "all checks passed; skipped: storage\n"
    rotated.bench().run("job_last", costing(0.1))


@pytest.mark.services
def test_cutoff_includes_a_head_that_is_not_yet_committed(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W11: a running process has signed the head and will commit it."""
    monkeypatch.setenv("COREVAULT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COREVAULT_DATABASE_URL", database.engine.url.render_as_string(hide_password=False))
    assert run("keys").exit_code == 0
    settings = Settings()
    old = Signer(load_api_keys(settings.keys_dir).ledger_seed)
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with ThreadPoolExecutor(1) as pool:
        with database.write() as tx:
            journal.record_command(tx, "of a running process")
            chain.extend(tx, old)
            rotation_of_it = pool.submit(installation.rotate_ledger_key, settings)
            with database.read() as session:
                while not session.scalar(waiting):
                    assert not rotation_of_it.done(), rotation_of_it.result()
        rotation_of_it.result()
    held = load_api_keys(settings.keys_dir)
    with database.read() as session:
        ring = Signer(held.ledger_seed, held.ledger_retired, held.ledger_until).ring
        assert list(chain.find_faults(session, ring)) == []
        assert chain.find_newest(session) == 2


@pytest.mark.sqlite
def test_reservation_signed_by_a_retired_key_is_not_opened(rotated: Rotated) -> None:
    """W11: a thief commits to another plan; earlier reservations can still be opened."""
    bench = rotated.bench()
    bench.open("job_2")
    bench.reserve("job_3", costing(0.1))

    def forge(body: dict[str, Any]) -> dict[str, Any]:
        with rotated.database.read() as session:
            row = session.execute(text("SELECT account_id, sequence FROM ledger_entries WHERE job_id = 'job_3'")).one()
        altered = {name: value for name, value in body.items() if name not in {"signature", "key_id"}}
        altered["plan"] = "b" * 64
        signed = rotated.thief.sign(commitments._statement(row.account_id, row.sequence, "ds_a", "job_3", altered))
        return altered | {name: signed[name] for name in ("signature", "key_id")}

    with rotated.database.read() as session:
        account_id = session.scalars(text("SELECT account_id FROM ledger_reservations WHERE job_id = 'job_3'")).one()
    with rotated.database.write() as tx:
        rewrite_newest_entry(tx, account_id, forge)
    terms = bench.terms("job_3", commitment=commitment(plan="b" * 64))
    with pytest.raises(StateConflict, match="frozen"), rotated.database.write() as tx:
        bench.ledger.open(tx, "job_3", costing(0.1).events, terms)
