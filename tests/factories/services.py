"""The API's services, with test doubles only for external systems."""

import secrets

from nacl.public import PrivateKey

from app.db import Database
from app.jobs.lifecycle import Lifecycle
from app.ledger import Ledger
from app.queue import TaskQueue
from app.services import Limits, Services, VerificationKey
from app.vault.areas import Areas, WorkerAreas
from app.vault.signing import Signer
from app.vault.stores import make_folder_url
from tests.factories.rows import IDENTITY_KEY

MAX_EPSILON = 20.0


def areas_at(storage_url: str) -> Areas:
    """Open the API's areas in their default places below a storage URL."""
    return Areas.at(*(make_folder_url(storage_url, name) for name in ("incoming", "released", "wrapped-keys")))


def worker_areas_at(storage_url: str) -> WorkerAreas:
    return WorkerAreas.with_vault(areas_at(storage_url), make_folder_url(storage_url, "vault"))


def make_services(
    database: Database, queue: TaskQueue, storage_url: str, *, upload_bytes: int = 2**20, slots: int = 1_000_000
) -> Services:
    """Make services with new keys and with areas at ``storage_url``."""
    ledger_signer, release_signer = Signer(secrets.token_bytes(32)), Signer(secrets.token_bytes(32))
    ledger = Ledger(ledger_signer, MAX_EPSILON)
    return Services(
        database=database,
        ledger=ledger,
        areas=areas_at(storage_url),
        queue=queue,
        signer=ledger_signer,
        identity_key=IDENTITY_KEY,
        sealing_key=bytes(PrivateKey.generate().public_key),
        verification_keys=(
            VerificationKey(ledger_signer.key_id, ledger_signer.public_key, "ledger"),
            VerificationKey(release_signer.key_id, release_signer.public_key, "release"),
        ),
        limits=Limits(upload_bytes=upload_bytes, slots=slots),
        on_dataset_deleted=Lifecycle(ledger, queue).dataset_deleted,
    )
