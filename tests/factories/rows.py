"""Builders of database rows; every field has a default, so that a test sets only the relevant ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.auth.models import ApiKey
from app.auth.seals import compute_seal
from app.auth.secrets import generate_secret
from app.datasets.models import Content, Dataset, DatasetShare
from app.datasets.uploads.models import Upload, UploadPart
from app.db import WriteSession, generate_id, now
from app.jobs.models import Job
from app.releases.models import Release

IDENTITY_KEY = b"i" * 32
COLUMNS: list[dict[str, Any]] = [
    {"name": "age", "type": "integer", "lower": 17, "upper": 90, "missing": {"impute": 38}},
    {"name": "hours", "type": "real", "lower": 1, "upper": 99},
    {"name": "sex", "type": "categorical", "categories": ["Female", "Male"]},
    {"name": "income_gt_50k", "type": "binary"},
]


@dataclass(frozen=True, slots=True)
class Key:
    """A usable API key: the id of its row, and the secret that the caller sends."""

    id: str
    secret: str
    role: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret}"}


def api_key(
    tx: WriteSession,
    role: str = "owner",
    *,
    name: str = "a key",
    expires_at: datetime | None = None,
    revoked_at: datetime | None = None,
) -> Key:
    secret = generate_secret()
    key = Key(generate_id("key"), secret.text, role)
    row = ApiKey(
        id=key.id,
        name=name,
        role=role,
        source="key",
        prefix=secret.prefix,
        secret_hash=secret.keyed_hash(IDENTITY_KEY),
        created_at=now(),
        expires_at=expires_at,
        revoked_at=revoked_at,
    )
    row.seal = compute_seal(IDENTITY_KEY, row)
    tx.add(row)
    tx.flush()
    return key


def dataset(tx: WriteSession, owner_id: str, *, shared_with: tuple[str, ...] = (), **fields: Any) -> Dataset:
    """Add a declared dataset without content and without an account."""
    identifier = generate_id("ds")
    defaults: dict[str, Any] = {
        "id": identifier,
        "owner_id": owner_id,
        "name": "adult",
        "description": "",
        "sensitivity": "private",
        "population": identifier,
        "columns": COLUMNS,
        "privacy_unit": {"kind": "row"},
        "slots": 1_000,
        "releases_public": True,
        "created_at": now(),
        "updated_at": now(),
        "deleted_at": None,
        "deletion_receipt": None,
    }
    row = Dataset(**(defaults | fields))
    tx.add(row)
    tx.flush()
    tx.add_all(DatasetShare(dataset_id=row.id, key_id=key_id) for key_id in shared_with)
    tx.flush()
    return row


def content(tx: WriteSession, dataset_id: str, *, original: Sequence[str] = (), **fields: Any) -> Content:
    """Add a ready content whose sealed original has these object names.

    No object is stored under them.
    """
    defaults: dict[str, Any] = {
        "id": generate_id("ct"),
        "dataset_id": dataset_id,
        "version": 1,
        "status": "ready",
        "rejection": None,
        "media_type": "text/csv",
        "parts": len(original),
        "sealed_digest": None,
        "table_object": "tables/none",
        "wrapped_key": b"",
        "received_at": now(),
        "ended_at": now(),
        "lease_until": None,
        "queued_at": now(),
    }
    row = Content(**(defaults | fields))
    tx.add(row)
    tx.add_all(UploadPart(object_name=name, content_id=row.id, number=place) for place, name in enumerate(original))
    tx.flush()
    return row


def upload(tx: WriteSession, dataset_id: str, owner_id: str, objects: Sequence[str], **fields: Any) -> Upload:
    """Add an open upload whose parts have these object names; no object is stored."""
    defaults: dict[str, Any] = {
        "id": generate_id("up"),
        "dataset_id": dataset_id,
        "owner_id": owner_id,
        "content_id": generate_id("ct"),
        "media_type": "text/csv",
        "parts": len(objects),
        "created_at": now(),
        "expires_at": now(),
    }
    row = Upload(**(defaults | fields))
    tx.add(row)
    tx.add_all(
        UploadPart(object_name=name, content_id=row.content_id, number=place) for place, name in enumerate(objects)
    )
    tx.flush()
    return row


def job(tx: WriteSession, dataset_id: str, caller_id: str, **fields: Any) -> Job:
    """Add a queued job without a reservation."""
    defaults: dict[str, Any] = {
        "id": generate_id("job"),
        "dataset_id": dataset_id,
        "caller_id": caller_id,
        "request": {},
        "plan": {},
        "status": "queued",
        "stage": "queued",
        "steps_planned": 100,
        "cost_epsilon": 0.5,
        "cost_delta": 1e-6,
        "error_code": None,
        "release_id": None,
        "content_id": None,
        "lease_until": None,
        "created_at": now(),
        "queued_at": now(),
        "started_at": None,
        "ended_at": None,
    }
    row = Job(**(defaults | fields))
    tx.add(row)
    tx.flush()
    return row


def release(tx: WriteSession, dataset_id: str, job_id: str, **fields: Any) -> Release:
    """Add a release without stored representations."""
    defaults: dict[str, Any] = {
        "id": generate_id("rel"),
        "dataset_id": dataset_id,
        "job_id": job_id,
        "public": True,
        "created_at": now(),
        "body": {},
        "certificate": {},
        "representations": {},
    }
    row = Release(**(defaults | fields))
    tx.add(row)
    tx.flush()
    return row
