"""Rotation of keys; objects that were sealed or signed before stay readable."""

import secrets
import time
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal

from app.vault.envelope import KEY_BYTES
from app.vault.errors import VaultError
from app.vault.keys import (
    PAIRS,
    create_keys,
    derive_public,
    keep_cutoff,
    link_new,
    make_short_id,
    read_key,
    read_secret_key,
    replace_key,
)
from app.vault.local_store import sync_directory
from app.vault.signing import Cutoff

Use = Literal["opening", "ledger", "release"]
TOO_YOUNG: Final = (
    "An opening key was retired less than 24 hours ago. An API that was not restarted since then may still seal to it. "
    "Wait, or restart every API and then repeat the command with --yes."
)
USES: Final[tuple[Use, ...]] = ("opening", "ledger", "release")


def rotate(directory: Path, use: Use, cutoff: Cutoff | None = None) -> str:
    """Replace the current key by a new one; return the id of the retired key.

    The secret of a retired opening key is kept, because it opens older boxes. Of a signing key only the public half is
    kept. After a crash, either the old key is still in use, or the next start or rotation corrects the public key.

    Args:
        directory: the key directory.
        use: the key to rotate.
        cutoff: the last places that the ledger key has signed. Retired ledger keys without a cutoff get this one too.

    Raises:
        VaultError: as :func:`app.vault.keys.create_keys`.
    """
    create_keys(directory)
    secret, public = (directory / name for name in PAIRS[use])
    old, retiring = read_secret_key(secret), read_key(public)
    if use == "opening":
        link_new(directory / f"opening-{make_short_id(retiring)}.key", old)
    else:
        link_new(directory / f"{use}-{make_short_id(retiring)}.pub", retiring)
    if cutoff is not None:
        (directory / f"ledger-{make_short_id(retiring)}.until").unlink(missing_ok=True)  # of an interrupted rotation
        for path in directory.glob("ledger-*.pub"):
            keep_cutoff(directory, path.stem.removeprefix("ledger-"), cutoff)
    sync_directory(directory)
    new = secrets.token_bytes(KEY_BYTES)
    replace_key(secret, new)
    replace_key(public, derive_public(secret.name, new))
    sync_directory(directory)
    return make_short_id(retiring)


GRACE: Final = timedelta(hours=24)
"""How long after a rotation processes may still seal to the retired key; no upload lasts longer."""


def destroy_retired_opening(directory: Path, retired_for: timedelta = GRACE) -> int:
    """Destroy the retired opening keys; return their number.

    Call this only after all dataset keys were sealed to the key in use.

    Raises:
        VaultError: the key in use is damaged, so that the retired ones may be needed; or one of them was retired
            less than ``retired_for`` ago.
    """
    if derive_public("opening.key", read_secret_key(directory / "opening.key")) != read_key(directory / "sealing.pub"):
        raise VaultError
    retired = list(directory.glob("opening-*.key"))
    latest = time.time() - retired_for.total_seconds()
    if any(path.stat().st_mtime > latest for path in retired):
        raise VaultError(TOO_YOUNG)
    for path in retired:
        path.unlink()
    sync_directory(directory)
    return len(retired)
