"""Key escrow: all keys of an installation in one file, sealed to an escrow key.

The escrow key is made on a separate machine, and its secret must never be stored with the service.
"""

import base64
import json
import re
from pathlib import Path
from typing import Final

from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox

from app.vault.errors import VaultError
from app.vault.keys import link_new, read_key
from app.vault.local_store import sync_directory

_KIND: Final = "corevault keys 1"
_FILE = re.compile(r"(opening|ledger|release|identity|fingerprint|sealing)(-[0-9a-f]{16})?\.(key|pub|until)")


def create_escrow_key(secret: Path) -> Path:
    """Make an escrow key; return the path of the public key.

    The secret is written to ``secret``, which must not exist, and the public key to the same name with ``.pub``.

    Raises:
        VaultError: one of the two files exists.
    """
    public = secret.with_suffix(".pub")
    if secret.exists() or public.exists():
        raise VaultError(f"{secret} or {public} exists already. Choose another file name for the escrow key.")
    key = PrivateKey.generate()
    link_new(secret, bytes(key))
    link_new(public, bytes(key.public_key))
    return public


def seal_keys(directory: Path, recipient: Path) -> bytes:
    """Seal every key file of ``directory`` to the public key in ``recipient``.

    Files of retired keys are included.

    Raises:
        VaultError: a file is not a key.
    """
    files = {path.name: _encode(read_key(path)) for path in directory.iterdir() if _FILE.fullmatch(path.name)}
    content = json.dumps({"kind": _KIND, "files": files}).encode()
    return bytes(SealedBox(PublicKey(read_key(recipient))).encrypt(content))


def restore_keys(sealed: bytes, secret: Path, directory: Path) -> int:
    """Restore the sealed keys into ``directory``; return how many were missing there.

    Keys that are there already must be the same.

    Raises:
        VaultError: the file is not an escrow file, is for another escrow key, or has a key that differs from the one
            in ``directory``; nothing is changed then.
    """
    try:
        content = json.loads(SealedBox(PrivateKey(read_key(secret))).decrypt(sealed))
        keys = {name: base64.b64decode(text, validate=True) for name, text in content["files"].items()}
    except (CryptoError, ValueError, KeyError, TypeError):
        raise VaultError("This file is not a key escrow, or it was sealed to another escrow key.") from None
    if content.get("kind") != _KIND or not all(_FILE.fullmatch(name) for name in keys):
        raise VaultError("This file is not a key escrow of a version that this program can read.")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, key in keys.items():
        if (directory / name).exists() and read_key(directory / name) != key:
            raise VaultError(f"{name} exists in {directory} and differs from the escrow. Restore into an empty folder.")
    missing = [name for name in keys if not (directory / name).exists()]
    for name in missing:
        link_new(directory / name, keys[name])
    sync_directory(directory)
    return len(missing)


def _encode(key: bytes) -> str:
    return base64.b64encode(key).decode("ascii")
