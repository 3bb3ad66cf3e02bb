"""All keys of an installation in one sealed file, which only the holder of an escrow key opens.

The escrow key is made on a machine of its own and its secret never comes near the service.
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


def new_escrow_key(secret: Path) -> Path:
    """Make an escrow key; the secret lies in ``secret``, which must not exist, the public key beside it (``.pub``).

    Raises:
        VaultError: if one of the two files exists.
    """
    public = secret.with_suffix(".pub")
    if secret.exists() or public.exists():
        raise VaultError("There is an escrow key already; it is not replaced.")
    key = PrivateKey.generate()
    link_new(secret, bytes(key))
    link_new(public, bytes(key.public_key))
    return public


def seal_keys(directory: Path, recipient: Path) -> bytes:
    """Every key file of ``directory``, retired ones included, sealed to the public key in the file ``recipient``.

    Raises:
        VaultError: for a file that is no key.
    """
    files = {path.name: _text(read_key(path)) for path in directory.iterdir() if _FILE.fullmatch(path.name)}
    content = json.dumps({"kind": _KIND, "files": files}).encode()
    return bytes(SealedBox(PublicKey(read_key(recipient))).encrypt(content))


def restore_keys(sealed: bytes, secret: Path, directory: Path) -> int:
    """Put the sealed keys into ``directory``; how many were missing there. What lies there already must be the same.

    Raises:
        VaultError: for other bytes, another escrow key, or a key that is there and differs: nothing is changed then.
    """
    try:
        told = json.loads(SealedBox(PrivateKey(read_key(secret))).decrypt(sealed))
        keys = {name: base64.b64decode(text, validate=True) for name, text in told["files"].items()}
    except (CryptoError, ValueError, KeyError, TypeError):
        raise VaultError("This is no escrow of keys, or not for this escrow key.") from None
    if told.get("kind") != _KIND or not all(_FILE.fullmatch(name) for name in keys):
        raise VaultError("This is no escrow of keys.")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, key in keys.items():
        if (directory / name).exists() and read_key(directory / name) != key:
            raise VaultError(f"{name} is there already and differs; restore into an empty folder.")
    missing = [name for name in keys if not (directory / name).exists()]
    for name in missing:
        link_new(directory / name, keys[name])
    sync_directory(directory)
    return len(missing)


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode("ascii")
