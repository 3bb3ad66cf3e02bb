"""``corevaultd verify`` finds each kind of tampering, and reports it in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text
from typer.testing import CliRunner, Result

from app.audit import chain
from app.cli.commands import cli
from app.cli.verification import name_database
from app.db import Database
from app.ledger.models import Checkpoint
from app.vault.keys import IDENTITY, link_new
from app.vault.rotation import rotate
from app.vault.signing import Signer
from tests.factories import rows
from tests.factories.worker import House

pytestmark = pytest.mark.long

Verify = Callable[..., Result]
TRIGGERS = {
    "sqlite": "SELECT 'DROP TRIGGER ' || name FROM sqlite_master WHERE type = 'trigger'",
    "postgresql": "SELECT DISTINCT 'DROP TRIGGER ' || trigger_name || ' ON ' || event_object_table "
    "FROM information_schema.triggers",
}


@pytest.fixture
def verify(house: House, owner: rows.Key, admin: rows.Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Verify:
    """Return a function that runs the command on an installation without triggers.

    The installation has a release and an audit log.
    """
    house.run(house.job(house.ready_dataset(owner), owner))
    with house.client() as client:
        client.post("/v1/api-keys", headers=admin.headers, json={"name": "a", "role": "analyst"})
    with house.database.write() as tx:
        assert chain.extend(tx, house.services.signer) == 1
    with house.database.write() as tx:
        for drop in tx.execute(text(TRIGGERS[house.database.engine.dialect.name])).scalars().all():
            tx.execute(text(drop))
    monkeypatch.setenv("COREVAULT_DATABASE_URL", house.database.engine.url.render_as_string(hide_password=False))
    monkeypatch.setenv("COREVAULT_RELEASED_URL", house.areas.released.url)

    identity = tmp_path / "keys" / IDENTITY  # the house seals its callers' rows with another one
    identity.unlink()
    link_new(identity, rows.IDENTITY_KEY)
    adopted = CliRunner().invoke(cli, ["reconcile", "--adopt", "--data-dir", str(tmp_path)])
    assert adopted.exit_code == 0, adopted.output

    def run(*options: str) -> Result:
        return CliRunner().invoke(cli, ["verify", "--data-dir", str(tmp_path), *options])

    return run


def _tamper(database: Database, statement: str) -> None:
    with database.write() as tx:
        assert tx.execute(text(statement)).rowcount > 0  # type: ignore[attr-defined]


def _replace(database: Database, change: Callable[[dict[str, Any]], None], column: str) -> None:
    with database.write() as tx:
        document = tx.scalar(text(f"SELECT {column} FROM releases"))
        document = json.loads(document) if isinstance(document, str) else document
        change(document)
        tx.execute(text(f"UPDATE releases SET {column} = :value"), {"value": json.dumps(document)})


def test_intact_installation_passes_all_checks(verify: Verify) -> None:
    ended = verify()
    assert (ended.exit_code, ended.stdout) == (0, "all checks passed\n")
    ended = verify("--json")
    assert (ended.exit_code, json.loads(ended.stdout)) == (0, {"holds": True, "findings": []})


def test_verify_names_the_folder_and_the_database(verify: Verify, database: Database, tmp_path: Path) -> None:
    """W3: the output has no credentials. It shows an operator if the folder is the wrong one."""
    shown, url = verify().stderr, database.engine.url
    assert str(tmp_path.resolve()) in shown
    assert str(url.database) in shown
    assert url.password is None or url.password not in shown


def test_database_name_has_no_credentials() -> None:
    name = name_database("postgresql+psycopg://service:secret-1@db.test:5432/vault?password=secret-2&sslkey=secret-3")
    assert name == "postgresql database vault on db.test"


def test_verify_changes_nothing(verify: Verify, database: Database) -> None:
    def everything() -> list[Any]:
        with database.read() as session:
            tables = ("releases", "audit_entries", "audit_heads", "jobs", "datasets")
            return [session.execute(text(f"SELECT * FROM {table}")).all() for table in tables]

    before = everything()
    verify()
    assert everything() == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE ledger_entries SET epsilon_after = 0.0 WHERE sequence = 2", "account "),
        ("UPDATE ledger_accounts SET sequence = sequence - 1", "account "),
        ("UPDATE ledger_checkpoints SET account_head = 'x' WHERE sequence = 1", "account "),
        ("DELETE FROM ledger_reservations", "the ledger has no settled charge with the certificate's events"),
        (
            "DELETE FROM ledger_entries WHERE kind = 'settled'",
            "the ledger has no settled charge with the certificate's events",
        ),
        ("DELETE FROM ledger_checkpoints WHERE sequence = 2", "checkpoint that the certificate names is not in the"),
        ("UPDATE audit_entries SET actor = 'key_x'", "audit log: audit entry 1: altered"),
        ("DELETE FROM audit_entries", "audit log: audit head 1: its entry is missing"),
        ("UPDATE releases SET id = 'rel_x'", "release rel_x: the certificate does not match the release"),
        ("UPDATE releases SET certificate = '[]'", "malformed"),
        ("UPDATE releases SET representations = '[]'", "the row's representations are malformed"),
        ("UPDATE ledger_entries SET body = '[]' WHERE sequence = 2", "account "),
        ("UPDATE releases SET certificate = '{}'", "the certificate's signature is not valid"),
    ],
)
def test_changed_row_is_found(verify: Verify, database: Database, statement: str, words: str) -> None:
    """W8, W11."""
    _tamper(database, statement)
    ended = verify()
    assert ended.exit_code == 1, ended.output
    assert any(words in line for line in ended.output.splitlines()), ended.output


def test_changed_statement_is_found(verify: Verify, database: Database) -> None:
    _replace(database, lambda certificate: certificate["statement"].update(slots=1), "certificate")
    assert "the certificate's signature is not valid" in verify().output


def test_certificate_that_names_a_place_before_its_charge_is_found(
    house: House, verify: Verify, database: Database
) -> None:
    """W8: a release key can sign any place in the chains, so the place must include the charge."""
    with database.read() as session:
        opening = session.scalars(select(Checkpoint).order_by(Checkpoint.sequence)).first()
    assert opening is not None
    place = {"sequence": opening.sequence, "hash": opening.checkpoint_hash}
    earlier = {"sequence": opening.account_sequence, "head": opening.account_head, "checkpoint": place}

    def sign(certificate: dict[str, Any]) -> None:
        stated = certificate["statement"]
        stated["account"].update(earlier)
        certificate.update(Signer(house.keys.release_seed).sign(stated))

    _replace(database, sign, "certificate")
    assert "checkpoint that the certificate names is not in the chain" in verify().output


@pytest.mark.parametrize(
    "change", [{"cost": {"epsilon": 0.0, "delta": 0.0}}, {"reliability": {"grade": "calibrated", "reasons": []}}]
)
def test_changed_body_is_found(verify: Verify, database: Database, change: dict[str, Any]) -> None:
    _replace(database, lambda body: body.update(change), "body")
    assert "the certificate does not match the release" in verify().output


@pytest.mark.parametrize("name", ["json", "csv", "parquet", "npz", "belief.json", "belief.npz"])
def test_changed_or_lost_representation_is_found(house: House, verify: Verify, database: Database, name: str) -> None:
    with database.read() as session:
        document = session.scalar(text("SELECT representations FROM releases"))
    stored = (json.loads(document) if isinstance(document, str) else document)[name]
    house.areas.released.delete(stored["object"])
    assert f"the representation {name} is missing" in verify().output
    with house.areas.released.create(stored["object"]) as writer:
        writer.write(b"other")
        writer.publish()
    assert f"the bytes of the representation {name} differ from the recorded digest or length" in verify().output
    assert verify("--no-storage").exit_code == 0


def test_database_behind_its_mark_is_found(verify: Verify, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """W11: a restored backup is older than the mark."""
    monkeypatch.setenv("COREVAULT_MARK_URL", (tmp_path / "elsewhere").as_uri())
    ended = verify()
    assert ended.exit_code == 1
    assert ended.stdout.startswith("mark: The ledger has checkpoints")
    assert verify("--no-mark").stdout == "all checks passed; skipped: mark\n"


def test_findings_are_printed_as_json(verify: Verify, database: Database) -> None:
    _tamper(database, "UPDATE releases SET id = 'rel_x'")
    ended = verify("--json")
    assert ended.exit_code == 1
    document = json.loads(ended.stdout)
    assert document["holds"] is False
    assert {"kind": "release", "id": "rel_x", "finding": "the certificate does not match the release"} in document[
        "findings"
    ]


def test_signatures_of_retired_keys_pass_the_checks(verify: Verify, tmp_path: Path) -> None:
    rotate(tmp_path / "keys", "ledger")
    rotate(tmp_path / "keys", "release")
    assert verify().stdout == "all checks passed\n"


def test_release_signed_by_another_key_is_found(verify: Verify, tmp_path: Path) -> None:
    (tmp_path / "keys" / "release.pub").write_text((tmp_path / "keys" / "ledger.pub").read_text())
    assert "the certificate's signature is not valid" in verify().output


def test_database_that_is_not_migrated_is_reported(
    tmp_path: Path, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COREVAULT_DATABASE_URL", f"sqlite:///{tmp_path / 'empty.sqlite3'}")
    ended = verify()
    assert ended.exit_code == 1
    assert "run 'corevaultd migrate'" in ended.output
