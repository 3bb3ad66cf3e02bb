"""Key files: made once, replaced only by rotation, and loaded by role.

``opening.key`` and ``release.key`` are the worker's alone; the API loads what seals, what signs the ledger and
what verifies. Each file holds base64 text. A file appears complete or not at all (it is written under a
temporary name and linked), so processes that start at the same time agree on whoever linked first.

Rotation (:mod:`app.vault.rotation`) leaves what is still needed of a key beside its successor: ``opening-<id>.key``
opens what was sealed before, ``ledger-<id>.pub`` and ``release-<id>.pub`` verify what was signed before, the former as
far as ``ledger-<id>.until`` says: two numbers, of the last checkpoint and the last head of the audit log.
"""

import base64
import hashlib
import os
import secrets
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nacl.public import PrivateKey
from nacl.signing import SigningKey

from app.vault.envelope import KEY_BYTES, derived_key
from app.vault.errors import VaultError
from app.vault.local_store import sync_directory
from app.vault.signing import Chain, Cutoff

OPENING, SEALING = "opening.key", "sealing.pub"
LEDGER, LEDGER_PUBLIC = "ledger.key", "ledger.pub"
RELEASE, RELEASE_PUBLIC = "release.key", "release.pub"
IDENTITY = "identity.key"
FINGERPRINT = "fingerprint.key"
_CHAINS: tuple[Chain, ...] = ("checkpoint", "audit")
_CUTOFF = ">QQ16x"
API_FILES = (SEALING, LEDGER, LEDGER_PUBLIC, RELEASE_PUBLIC, IDENTITY)
PAIRS = {"opening": (OPENING, SEALING), "ledger": (LEDGER, LEDGER_PUBLIC), "release": (RELEASE, RELEASE_PUBLIC)}


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """All that the API may hold: it can seal, sign ledger entries, verify, and tell who calls."""

    sealing_key: bytes
    ledger_seed: bytes = field(repr=False)
    ledger_public: str
    release_public: str
    identity_key: bytes = field(repr=False)
    ledger_retired: tuple[str, ...] = ()
    ledger_until: Mapping[str, Cutoff] = field(default_factory=dict)
    release_retired: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerKeys:
    """What a worker holds: it alone can open, and sign releases."""

    opening_key: bytes = field(repr=False)
    ledger_seed: bytes = field(repr=False)
    release_seed: bytes = field(repr=False)
    fingerprint_key: bytes = field(repr=False)
    opening_retired: tuple[bytes, ...] = field(default=(), repr=False)
    ledger_retired: tuple[str, ...] = ()
    ledger_until: Mapping[str, Cutoff] = field(default_factory=dict)


def create_keys(directory: Path) -> None:
    """Make whatever key is missing; what exists stays as it is. Safe to call from several processes at once.

    Raises:
        VaultError: if a public key lies there without its secret, or does not belong to it.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for secret, public in PAIRS.values():
        _create_pair(directory / secret, directory / public)
    link_new(directory / FINGERPRINT, _first_fingerprint_key(directory))
    link_new(directory / IDENTITY, secrets.token_bytes(KEY_BYTES))
    sync_directory(directory)


def load_api_keys(directory: Path) -> ApiKeys:
    """The API's keys; touches no other file.

    Raises:
        VaultError: for a missing or malformed file, or a secret that other users can read.
    """
    return ApiKeys(
        sealing_key=read_key(directory / SEALING),
        ledger_seed=secret_key(directory / LEDGER),
        ledger_public=_encode(read_key(directory / LEDGER_PUBLIC)),
        release_public=_encode(read_key(directory / RELEASE_PUBLIC)),
        identity_key=load_identity_key(directory),
        ledger_retired=retired_public(directory, "ledger"),
        ledger_until=ledger_cutoffs(directory),
        release_retired=retired_public(directory, "release"),
    )


def load_identity_key(directory: Path) -> bytes:
    """The key under which the secrets of API keys are hashed.

    Raises:
        VaultError: as :func:`load_api_keys`.
    """
    return secret_key(directory / IDENTITY)


def load_sealing_key(directory: Path) -> bytes:
    """The public key that boxes are sealed to."""
    return read_key(directory / SEALING)


def load_worker_keys(directory: Path) -> WorkerKeys:
    """The worker's keys.

    Raises:
        VaultError: as :func:`load_api_keys`.
    """
    return WorkerKeys(
        opening_key=secret_key(directory / OPENING),
        ledger_seed=secret_key(directory / LEDGER),
        release_seed=secret_key(directory / RELEASE),
        fingerprint_key=_fingerprint_key(directory),
        opening_retired=tuple(secret_key(path) for path in sorted(directory.glob("opening-*.key"))),
        ledger_retired=retired_public(directory, "ledger"),
        ledger_until=ledger_cutoffs(directory),
    )


def retired_public(directory: Path, use: str) -> tuple[str, ...]:
    """Public keys (base64) that earlier signatures of this ``use`` are verified with."""
    return tuple(_encode(read_key(path)) for path in sorted(directory.glob(f"{use}-*.pub")))


def ledger_cutoffs(directory: Path) -> dict[str, Cutoff]:
    """How far retired ledger keys are believed, by public key (base64)."""
    files = {path: path.with_suffix(".until") for path in directory.glob("ledger-*.pub")}
    return {_encode(read_key(public)): _cutoff(read_key(until)) for public, until in files.items() if until.exists()}


def keep_cutoff(directory: Path, retired_id: str, cutoff: Cutoff) -> None:
    """Note how far a retired ledger key is believed, unless that is known; in a file of a key's form."""
    numbers = struct.pack(_CUTOFF, *(cutoff[chain] for chain in _CHAINS))
    link_new(directory / f"ledger-{retired_id}.until", numbers)


def _cutoff(numbers: bytes) -> Cutoff:
    return dict(zip(_CHAINS, struct.unpack(_CUTOFF, numbers), strict=True))


def short_id(public: bytes) -> str:
    """What tells keys of one use apart in their files' names: as in a verification key's id."""
    return hashlib.sha256(public).hexdigest()[:16]


def share_api_keys(directory: Path, share: Path) -> None:
    """Bring the API's share up to date: what seals, signs the ledger and verifies, and never what opens.

    A share that lets its group in (made so by the operator) stays readable to it.
    """
    share.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = 0o600 | share.stat().st_mode & 0o040
    patterns = ("ledger-*.pub", "ledger-*.until", "release-*.pub")
    retired = [path.name for pattern in patterns for path in directory.glob(pattern)]
    for name in (*API_FILES, *retired):
        key = read_key(directory / name)
        if not (share / name).exists() or read_key(share / name) != key:
            replace_key(share / name, key, mode)
    sync_directory(share)


def _create_pair(secret: Path, public: Path) -> None:
    public_was_there = public.exists()  # asked first: a racing process links the secret before the public key
    if public_was_there and not secret.exists():
        raise VaultError(f"{public.name} lies in the key directory without {secret.name}; restore the secret key.")
    link_new(secret, secrets.token_bytes(KEY_BYTES))
    derived = derived_public(secret.name, secret_key(secret))
    link_new(public, derived)
    lying = read_key(public)
    if lying == derived:
        return
    left_by_rotation = (
        secret.with_name(f"{secret.stem}-{short_id(lying)}.key"),
        public.with_name(f"{secret.stem}-{short_id(lying)}.pub"),
    )
    if any(path.exists() for path in left_by_rotation):  # it was cut short before its last step
        replace_key(public, derived)
    else:
        raise VaultError(f"{public.name} does not belong to {secret.name}.")


def _first_fingerprint_key(directory: Path) -> bytes:
    """Installations from before there was such a file took the opening key's for it."""
    return derived_key(secret_key(directory / OPENING), b"fingerprints")


def _fingerprint_key(directory: Path) -> bytes:
    if not (directory / FINGERPRINT).exists() and not any(directory.glob("opening-*.key")):
        return _first_fingerprint_key(directory)
    return secret_key(directory / FINGERPRINT)


def derived_public(name: str, secret: bytes) -> bytes:
    if name == OPENING:
        return bytes(PrivateKey(secret).public_key)
    return bytes(SigningKey(secret).verify_key)


def replace_key(path: Path, key: bytes, mode: int = 0o600) -> None:
    """Put ``key`` in the place of what the file holds, at once."""
    temporary = _write(path, key)
    temporary.chmod(mode)
    temporary.rename(path)


def link_new(path: Path, key: bytes) -> None:
    if path.exists():
        return
    temporary = _write(path, key)
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink()


def _write(path: Path, key: bytes) -> Path:
    """A durable file beside ``path``."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(_encode(key) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return temporary


def secret_key(path: Path) -> bytes:
    key = read_key(path)
    if path.stat().st_mode & 0o007:
        raise VaultError(f"{path.name} can be read by other users; take their permission away (chmod 600).")
    return key


def read_key(path: Path) -> bytes:
    try:
        key = base64.b64decode(path.read_text(encoding="ascii").strip(), validate=True)
    except (OSError, ValueError):
        raise VaultError(f"{path.name} is missing from the key directory, or is not a key.") from None
    if len(key) != KEY_BYTES:
        raise VaultError(f"{path.name} is not a key of {KEY_BYTES} bytes.")
    return key


def _encode(key: bytes) -> str:
    return base64.b64encode(key).decode("ascii")
