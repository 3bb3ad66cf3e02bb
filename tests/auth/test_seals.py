"""A writer to the database without the identity key gains no access."""

import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy.orm import object_session

from app.auth.models import ApiKey
from app.auth.seals import compute_seal
from app.auth.secrets import generate_secret
from app.auth.service import Keys
from app.db import Database, WriteSession, generate_id, now
from app.main import _report_unsealed
from app.services import Services
from tests.factories import rows
from tests.factories.datasets import problem

KEYS = Keys(rows.IDENTITY_KEY)
SOON = datetime(2999, 1, 31, 11, tzinfo=UTC)


def test_a_seal_is_an_hmac_of_every_deciding_column(database: Database) -> None:
    """A second derivation, by the streaming HMAC, before and after the database."""
    with database.write() as tx:
        key, _ = KEYS.create(tx, "ward 7", "owner", SOON.astimezone())
    stated = [key.id, "key", "owner", key.prefix, key.secret_hash, "2999-01-31T11:00:00+00:00"]
    mac = hmac.new(rows.IDENTITY_KEY, b"corevault.caller\0", "sha256")
    mac.update(json.dumps(stated, separators=(",", ":")).encode())
    with database.read() as session:
        read = session.get_one(ApiKey, key.id)
        assert (read.seal, compute_seal(rows.IDENTITY_KEY, read)) == (mac.hexdigest(),) * 2


def _role(row: ApiKey, _: ApiKey) -> None:
    row.role = "admin"


def _expiry(row: ApiKey, _: ApiKey) -> None:
    row.expires_at = SOON


def _other_secret(row: ApiKey, admin: ApiKey) -> None:
    """Put the hash of the attacker's secret into the administrator's row."""
    mine, row.secret_hash = row.secret_hash, "swapped"
    row.prefix, admin.prefix = admin.prefix, row.prefix
    session = object_session(row)
    assert session is not None
    session.flush()
    admin.secret_hash = mine


def _other_seal(row: ApiKey, admin: ApiKey) -> None:
    row.role, row.seal = "admin", admin.seal


def _no_seal(row: ApiKey, _: ApiKey) -> None:
    row.role, row.seal = "admin", None


def _empty_seal(row: ApiKey, _: ApiKey) -> None:
    row.role, row.seal = "admin", ""


def _source(row: ApiKey, _: ApiKey) -> None:
    row.source = "oidc"


@pytest.mark.parametrize("alter", [_role, _expiry, _other_secret, _other_seal, _no_seal, _empty_seal, _source])
def test_an_altered_row_is_not_accepted(
    database: Database, client: httpx.Client, admin: rows.Key, alter: Callable[[ApiKey, ApiKey], None]
) -> None:
    with database.write() as tx:
        key = rows.api_key(tx, "analyst", expires_at=now() + timedelta(hours=1))
    assert client.get("/v1/me", headers=key.headers).status_code == 200
    with database.write() as tx:
        alter(tx.get_one(ApiKey, key.id), tx.get_one(ApiKey, admin.id))
    problem(client.get("/v1/me", headers=key.headers), 401, "unauthenticated")
    with database.read() as session:
        assert key.id in KEYS.list_unsealed(session)


def test_a_row_added_without_the_identity_key_is_not_accepted(database: Database, client: httpx.Client) -> None:
    """Its hash and seal use another key. The identity key is not in the database."""
    secret = generate_secret()
    with database.write() as tx:
        row = ApiKey(
            id=generate_id("key"), name="a", role="admin", source="key", prefix=secret.prefix, created_at=now()
        )
        row.secret_hash = secret.keyed_hash(b"j" * 32)
        row.seal = compute_seal(b"j" * 32, row)
        tx.add(row)
    problem(client.get("/v1/me", headers={"Authorization": f"Bearer {secret.text}"}), 401, "unauthenticated")


def test_a_revoked_key_cannot_be_restored_in_the_database(
    database: Database, client: httpx.Client, admin: rows.Key, owner: rows.Key
) -> None:
    assert client.delete(f"/v1/api-keys/{owner.id}", headers=admin.headers).status_code == 204
    with database.write() as tx:
        tx.get_one(ApiKey, owner.id).revoked_at = None
    problem(client.get("/v1/me", headers=owner.headers), 401, "unauthenticated")


def test_an_altered_row_gets_no_new_secret(client: httpx.Client, admin: rows.Key, database: Database) -> None:
    """Rotation would seal an attacker's changes."""
    with database.write() as tx:
        key = rows.api_key(tx, "analyst")
        tx.get_one(ApiKey, key.id).role = "admin"
    refused = client.post(f"/v1/api-keys/{key.id}/rotate", headers=admin.headers)
    assert "altered in the database" in problem(refused, 409, "state_conflict")["detail"]
    assert client.delete(f"/v1/api-keys/{key.id}", headers=admin.headers).status_code == 204


def test_an_added_admin_does_not_replace_the_last_admin_key(
    client: httpx.Client, admin: rows.Key, database: Database
) -> None:
    with database.write() as tx:
        added = rows.api_key(tx, "analyst")
        tx.get_one(ApiKey, added.id).role = "admin"
    refused = client.delete(f"/v1/api-keys/{admin.id}", headers=admin.headers)
    assert "last admin key" in problem(refused, 409, "state_conflict")["detail"]


def test_rows_without_a_valid_seal_are_logged(
    services: Services, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    with database.write() as tx:
        key = rows.api_key(tx, "analyst")
        sound = rows.api_key(tx, "analyst")
        _alter(tx, key)
    _report_unsealed(services)
    captured = capsys.readouterr()
    written = captured.out + captured.err
    assert key.id in written
    assert sound.id not in written


def _alter(tx: WriteSession, key: rows.Key) -> None:
    tx.get_one(ApiKey, key.id).role = "admin"
