"""Key files: created once, replaced only by rotation, and loaded by role.

Only the worker loads ``opening.key`` and ``release.key``. The API loads the keys that seal, that sign the ledger and
that verify. Each file holds base64 text. A file is written under a temporary name and then linked, so it is always
complete. If several processes start at the same time, they all use the file that was linked first.

Rotation (:mod:`app.vault.rotation`) keeps the needed part of a retired key in the same folder. ``opening-<id>.key``
opens older boxes. ``ledger-<id>.pub`` and ``release-<id>.pub`` verify older signatures. ``ledger-<id>.until`` is the
cutoff of a ledger key: two numbers, the places of the last checkpoint and of the last head of the audit log.
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

from app.vault.envelope import KEY_BYTES, derive_key
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
    """The API's keys, to seal, sign ledger entries, verify, and authenticate callers."""

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
    """The keys of a worker; only workers can open boxes and sign releases."""

    opening_key: bytes = field(repr=False)
    ledger_seed: bytes = field(repr=False)
    release_seed: bytes = field(repr=False)
    fingerprint_key: bytes = field(repr=False)
    opening_retired: tuple[bytes, ...] = field(default=(), repr=False)
    ledger_retired: tuple[str, ...] = ()
    ledger_until: Mapping[str, Cutoff] = field(default_factory=dict)


def create_keys(directory: Path) -> None:
    """Create the missing keys; existing ones stay unchanged.

    Several processes may call this at once.

    Raises:
        VaultError: a public key exists without its secret, or does not belong to it.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for secret, public in PAIRS.values():
        _create_pair(directory / secret, directory / public)
    link_new(directory / FINGERPRINT, _first_fingerprint_key(directory))
    link_new(directory / IDENTITY, secrets.token_bytes(KEY_BYTES))
    sync_directory(directory)


def load_api_keys(directory: Path) -> ApiKeys:
    """Load the API's keys; no other file is read.

    Raises:
        VaultError: a file is missing or malformed, or other users can read a secret.
    """
    return ApiKeys(
        sealing_key=read_key(directory / SEALING),
        ledger_seed=read_secret_key(directory / LEDGER),
        ledger_public=_encode(read_key(directory / LEDGER_PUBLIC)),
        release_public=_encode(read_key(directory / RELEASE_PUBLIC)),
        identity_key=load_identity_key(directory),
        ledger_retired=list_retired_public(directory, "ledger"),
        ledger_until=list_ledger_cutoffs(directory),
        release_retired=list_retired_public(directory, "release"),
    )


def load_identity_key(directory: Path) -> bytes:
    """Load the key for the keyed hashes of API keys' secrets.

    Raises:
        VaultError: as :func:`load_api_keys`.
    """
    return read_secret_key(directory / IDENTITY)


def load_sealing_key(directory: Path) -> bytes:
    """Load the public key that boxes are sealed to."""
    return read_key(directory / SEALING)


def load_worker_keys(directory: Path) -> WorkerKeys:
    """Load the worker's keys.

    Raises:
        VaultError: as :func:`load_api_keys`.
    """
    return WorkerKeys(
        opening_key=read_secret_key(directory / OPENING),
        ledger_seed=read_secret_key(directory / LEDGER),
        release_seed=read_secret_key(directory / RELEASE),
        fingerprint_key=_fingerprint_key(directory),
        opening_retired=tuple(read_secret_key(path) for path in sorted(directory.glob("opening-*.key"))),
        ledger_retired=list_retired_public(directory, "ledger"),
        ledger_until=list_ledger_cutoffs(directory),
    )


def list_retired_public(directory: Path, use: str) -> tuple[str, ...]:
    """Return the retired public keys (base64) of this ``use``, which verify earlier signatures."""
    return tuple(_encode(read_key(path)) for path in sorted(directory.glob(f"{use}-*.pub")))


def list_ledger_cutoffs(directory: Path) -> dict[str, Cutoff]:
    """Return the cutoffs of retired ledger keys, by public key (base64)."""
    files = {path: path.with_suffix(".until") for path in directory.glob("ledger-*.pub")}
    return {
        _encode(read_key(public)): _unpack_cutoff(read_key(until)) for public, until in files.items() if until.exists()
    }


def keep_cutoff(directory: Path, retired_id: str, cutoff: Cutoff) -> None:
    """Write the cutoff of a retired ledger key, unless it has one; the file has the form of a key."""
    numbers = struct.pack(_CUTOFF, *(cutoff[chain] for chain in _CHAINS))
    link_new(directory / f"ledger-{retired_id}.until", numbers)


def _unpack_cutoff(numbers: bytes) -> Cutoff:
    return dict(zip(_CHAINS, struct.unpack(_CUTOFF, numbers), strict=True))


def make_short_id(public: bytes) -> str:
    """Return the id of a key in file names; it has the digits of the verification key's id."""
    return hashlib.sha256(public).hexdigest()[:16]


def share_api_keys(directory: Path, share: Path) -> None:
    """Update the API's share: the keys that seal, sign the ledger and verify, but never an opening key.

    If the operator has given the share's group access, the group can read the new files too.
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
    public_was_there = public.exists()  # checked first, because a racing process links the secret before the public key
    if public_was_there and not secret.exists():
        raise VaultError(f"The key directory has {public.name} without {secret.name}. Restore {secret.name}.")
    link_new(secret, secrets.token_bytes(KEY_BYTES))
    derived = derive_public(secret.name, read_secret_key(secret))
    link_new(public, derived)
    existing = read_key(public)
    if existing == derived:
        return
    left_by_rotation = (
        secret.with_name(f"{secret.stem}-{make_short_id(existing)}.key"),
        public.with_name(f"{secret.stem}-{make_short_id(existing)}.pub"),
    )
    if any(path.exists() for path in left_by_rotation):  # a rotation was interrupted before its last step
        replace_key(public, derived)
    else:
        raise VaultError(
            f"{public.name} in the key directory does not belong to {secret.name}. Restore both from one backup."
        )


def _first_fingerprint_key(directory: Path) -> bytes:
    """Derive the fingerprint key from the opening key, as installations without its file did."""
    return derive_key(read_secret_key(directory / OPENING), b"fingerprints")


def _fingerprint_key(directory: Path) -> bytes:
    if not (directory / FINGERPRINT).exists() and not any(directory.glob("opening-*.key")):
        return _first_fingerprint_key(directory)
    return read_secret_key(directory / FINGERPRINT)


def derive_public(name: str, secret: bytes) -> bytes:
    if name == OPENING:
        return bytes(PrivateKey(secret).public_key)
    return bytes(SigningKey(secret).verify_key)


def replace_key(path: Path, key: bytes, mode: int = 0o600) -> None:
    """Replace the file's content by ``key`` in one atomic step."""
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
    """Write the key durably to a temporary file in the folder of ``path``."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(_encode(key) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return temporary


def read_secret_key(path: Path) -> bytes:
    key = read_key(path)
    if path.stat().st_mode & 0o007:
        raise VaultError(f"Other users have access to {path.name}. Remove their permissions (chmod 600).")
    return key


def read_key(path: Path) -> bytes:
    try:
        key = base64.b64decode(path.read_text(encoding="ascii").strip(), validate=True)
    except (OSError, ValueError):
        raise VaultError(f"The key file {path.name} is missing, cannot be read or is not a key.") from None
    if len(key) != KEY_BYTES:
        raise VaultError(f"The key file {path.name} does not hold a key of {KEY_BYTES} bytes.")
    return key


def _encode(key: bytes) -> str:
    return base64.b64encode(key).decode("ascii")
