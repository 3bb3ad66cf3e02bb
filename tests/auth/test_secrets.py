"""Storage of secrets, and how a key is found by its secret."""

import hashlib
import hmac
import re
import secrets
import threading
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import select

from app.auth import repository
from app.auth.models import ApiKey
from app.auth.seals import compute_seal
from app.auth.secrets import generate_secret, parse
from app.auth.service import Keys, note_use
from app.db import BackgroundWriter, Database, WriteSession, generate_id, now
from app.errors import Unauthenticated
from tests.factories import rows
from tests.factories.datasets import problem

KEYS = Keys(rows.IDENTITY_KEY)


def _old_key(tx: WriteSession, role: str = "owner") -> rows.Key:
    """Add a key in the form from before there was an identity key."""
    key = rows.Key(generate_id("key"), "cv_" + secrets.token_urlsafe(32), role)
    plain = hashlib.sha256(key.secret.encode()).hexdigest()
    tx.add(ApiKey(id=key.id, name="old", role=role, secret_hash=plain, created_at=now()))
    tx.flush()
    return key


def _row(database: Database, key_id: str) -> ApiKey:
    with database.read() as session:
        return session.get_one(ApiKey, key_id)


def test_a_secret_has_a_public_prefix_and_256_random_bits() -> None:
    made = [generate_secret() for _ in range(200)]
    assert len({each.text for each in made}) == len({each.prefix for each in made}) == 200
    for each in made:
        assert re.fullmatch(r"cv_[0-9a-z]{10}_[A-Za-z0-9_-]{43}", each.text)
        assert each.text.startswith(f"{each.prefix}_")
        assert parse(each.text) == each
        assert each.text not in repr(each)


@pytest.mark.parametrize(
    "text",
    ["", "cv_", "cv_" + "A" * 44, "cv_" + "0" * 10 + "_" + "A" * 42, "cv_" + "O" * 10 + "_" + "A" * 43, "é" * 57],
)
def test_text_of_another_form_is_no_secret(text: str) -> None:
    assert parse(text) is None


def test_the_stored_hash_is_an_hmac_under_the_identity_key(database: Database) -> None:
    """A second derivation, by the standard library's streaming HMAC."""
    with database.write() as tx:
        key, text = KEYS.create(tx, "ward 7", "owner")
    expected = hmac.new(rows.IDENTITY_KEY, digestmod=hashlib.sha256)
    expected.update(b"corevault.api_key\0")
    expected.update(text.encode())
    row = _row(database, key.id)
    assert row.secret_hash == expected.hexdigest()
    assert row.prefix == text[:13]
    assert text[14:] not in repr(vars(row))


def test_no_key_works_under_another_identity_key(database: Database) -> None:
    """A stolen or restored copy of the database gives access to no caller."""
    with database.write() as tx:
        _, text = KEYS.create(tx, "ward 7", "owner")
    with database.read() as session, pytest.raises(Unauthenticated):
        Keys(b"j" * 32).authenticate(session, text)


def test_a_valid_prefix_with_another_secret_is_refused(database: Database, client: httpx.Client) -> None:
    with database.write() as tx:
        key = rows.api_key(tx)
    last = "A" if key.secret[-1] != "A" else "B"
    refused = client.get("/v1/me", headers={"Authorization": f"Bearer {key.secret[:-1]}{last}"})
    assert (refused.status_code, refused.json()["code"]) == (401, "unauthenticated")


def test_keys_with_the_same_prefix_are_distinguished(database: Database) -> None:
    with database.write() as tx:
        made = [rows.api_key(tx) for _ in range(3)]
        for key in made:
            text = f"cv_{'0' * 10}_{key.secret[-43:]}"
            secret = parse(text)
            assert secret is not None
            row = tx.get_one(ApiKey, key.id)
            row.prefix, row.secret_hash = secret.prefix, secret.keyed_hash(rows.IDENTITY_KEY)
            row.seal = compute_seal(rows.IDENTITY_KEY, row)
    with database.read() as session:
        for key in made:
            assert KEYS.authenticate(session, f"cv_{'0' * 10}_{key.secret[-43:]}").id == key.id


def test_a_stored_keyed_hash_is_compared_in_constant_time(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[str, str]] = []
    genuine = hmac.compare_digest

    def watched(a: str, b: str) -> bool:
        compared.append((a, b))
        return genuine(a, b)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    with database.write() as tx:
        key = rows.api_key(tx)
    with database.read() as session:
        KEYS.authenticate(session, key.secret)
        with pytest.raises(Unauthenticated):
            KEYS.authenticate(session, generate_secret().text)
    assert len(compared) == 2, "an unknown key costs a comparison too"


@pytest.mark.parametrize("role", ["admin", "owner"])
def test_a_key_with_a_plain_hash_is_refused(database: Database, client: httpx.Client, role: str) -> None:
    """A writer to the database could compute a plain hash, and add an administrator."""
    with database.write() as tx:
        key = _old_key(tx, role=role)
    problem(client.get("/v1/me", headers=key.headers), 401, "unauthenticated")
    with database.read() as session:
        assert KEYS.list_unsealed(session) == [key.id]


def test_an_administrator_may_rotate_a_key_of_the_old_form(
    database: Database, client: httpx.Client, admin: rows.Key
) -> None:
    """The key still owns its datasets."""
    with database.write() as tx:
        key = _old_key(tx)
    rotated = client.post(f"/v1/api-keys/{key.id}/rotate", headers=admin.headers).json()
    me = client.get("/v1/me", headers={"Authorization": f"Bearer {rotated['key']}"}).json()
    assert (me["id"], me["role"]) == (key.id, "owner")


def test_a_use_is_noted_once_a_minute(database: Database) -> None:
    with database.write() as tx:
        key = rows.api_key(tx)
    at = now()
    row = _row(database, key.id)
    first = note_use(row, at)
    assert first is not None
    with database.write() as tx:
        first(tx)
    row = _row(database, key.id)
    assert row.last_used_at == at
    assert note_use(row, at + timedelta(seconds=59)) is None
    assert note_use(row, at + timedelta(seconds=60)) is not None


def test_a_late_write_of_an_earlier_use_changes_nothing(database: Database) -> None:
    with database.write() as tx:
        key = rows.api_key(tx)
        repository.note_use(tx, key.id, at := now())
        repository.note_use(tx, key.id, at - timedelta(minutes=5))
    assert _row(database, key.id).last_used_at == at


def test_the_list_shows_prefix_and_last_use(client: httpx.Client, admin: rows.Key, database: Database) -> None:
    with database.write() as tx:
        repository.note_use(tx, admin.id, now())
    (listed,) = client.get("/v1/api-keys", headers=admin.headers).json()["items"]
    assert listed["prefix"] == admin.secret[:13]
    assert listed["last_used_at"] is not None
    assert listed["source"] == "key"


def test_a_background_write_neither_blocks_nor_repeats(database: Database) -> None:
    ran: list[str] = []
    gate = threading.Event()

    def wait(_: WriteSession) -> None:
        ran.append("first")
        gate.wait(10)

    background = BackgroundWriter(database)
    background.soon("first", wait)
    for _ in range(5):
        background.soon("second", lambda tx: ran.append("second"))
    gate.set()
    background.finish()
    assert ran == ["first", "second"]
    background.soon("second", lambda tx: ran.append("again"))
    background.finish()
    background.close()
    assert ran[-1] == "again"


def test_a_failed_background_write_is_logged_without_its_message(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    """W3: only the class of the error is logged."""

    def fail(tx: WriteSession) -> None:
        tx.execute(select(ApiKey.id))
        raise OSError("canary-7461")

    background = BackgroundWriter(database)
    background.soon("it", fail)
    background.finish()
    background.close()
    shown = capsys.readouterr()
    assert "OSError" in shown.out + shown.err
    assert "canary-7461" not in shown.out + shown.err
