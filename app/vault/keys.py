"""Key files: made once, never overwritten, and loaded by role.

``opening.key`` and ``release.key`` are the worker's alone; the API loads what seals, what signs the ledger and
what verifies. Each file holds base64 text. A file appears complete or not at all (it is written under a
temporary name and linked), so processes that start at the same time agree on whoever linked first.
"""

import base64
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nacl.public import PrivateKey
from nacl.signing import SigningKey

from app.vault.envelope import KEY_BYTES
from app.vault.errors import VaultError
from app.vault.local_store import sync_directory

OPENING, SEALING = "opening.key", "sealing.pub"
LEDGER, LEDGER_PUBLIC = "ledger.key", "ledger.pub"
RELEASE, RELEASE_PUBLIC = "release.key", "release.pub"
IDENTITY = "identity.key"


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """All that the API may hold: it can seal, sign ledger entries, verify, and tell who calls."""

    sealing_key: bytes
    ledger_seed: bytes = field(repr=False)
    ledger_public: str
    release_public: str
    identity_key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class WorkerKeys:
    """What a worker holds: it alone can open, and sign releases."""

    opening_key: bytes = field(repr=False)
    ledger_seed: bytes = field(repr=False)
    release_seed: bytes = field(repr=False)


def create_keys(directory: Path) -> None:
    """Make whatever key is missing; what exists stays as it is. Safe to call from several processes at once.

    Raises:
        VaultError: if a public key lies there without its secret, or does not belong to it.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for secret, public in ((OPENING, SEALING), (LEDGER, LEDGER_PUBLIC), (RELEASE, RELEASE_PUBLIC)):
        _create_pair(directory / secret, directory / public)
    _link_new(directory / IDENTITY, secrets.token_bytes(KEY_BYTES))
    sync_directory(directory)


def load_api_keys(directory: Path) -> ApiKeys:
    """The API's keys; touches no other file.

    Raises:
        VaultError: for a missing or malformed file, or a secret that other users can read.
    """
    return ApiKeys(
        sealing_key=_read_key(directory / SEALING),
        ledger_seed=_secret_key(directory / LEDGER),
        ledger_public=_encoded(_read_key(directory / LEDGER_PUBLIC)),
        release_public=_encoded(_read_key(directory / RELEASE_PUBLIC)),
        identity_key=load_identity_key(directory),
    )


def load_identity_key(directory: Path) -> bytes:
    """The key under which the secrets of API keys are hashed.

    Raises:
        VaultError: as :func:`load_api_keys`.
    """
    return _secret_key(directory / IDENTITY)


def load_worker_keys(directory: Path) -> WorkerKeys:
    """The worker's keys.

    Raises:
        VaultError: as :func:`load_api_keys`.
    """
    return WorkerKeys(
        opening_key=_secret_key(directory / OPENING),
        ledger_seed=_secret_key(directory / LEDGER),
        release_seed=_secret_key(directory / RELEASE),
    )


def _create_pair(secret: Path, public: Path) -> None:
    public_was_there = public.exists()  # asked first: a racing process links the secret before the public key
    if public_was_there and not secret.exists():
        raise VaultError(f"{public.name} lies in the key directory without {secret.name}; restore the secret key.")
    _link_new(secret, secrets.token_bytes(KEY_BYTES))
    derived = _derived_public(secret.name, _secret_key(secret))
    _link_new(public, derived)
    if _read_key(public) != derived:
        raise VaultError(f"{public.name} does not belong to {secret.name}.")


def _derived_public(name: str, secret: bytes) -> bytes:
    if name == OPENING:
        return bytes(PrivateKey(secret).public_key)
    return bytes(SigningKey(secret).verify_key)


def _link_new(path: Path, key: bytes) -> None:
    if path.exists():
        return
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(_encoded(key) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()


def _secret_key(path: Path) -> bytes:
    key = _read_key(path)
    if path.stat().st_mode & 0o007:
        raise VaultError(f"{path.name} can be read by other users; take their permission away (chmod 600).")
    return key


def _read_key(path: Path) -> bytes:
    try:
        key = base64.b64decode(path.read_text(encoding="ascii").strip(), validate=True)
    except (OSError, ValueError):
        raise VaultError(f"{path.name} is missing from the key directory, or is not a key.") from None
    if len(key) != KEY_BYTES:
        raise VaultError(f"{path.name} is not a key of {KEY_BYTES} bytes.")
    return key


def _encoded(key: bytes) -> str:
    return base64.b64encode(key).decode("ascii")
