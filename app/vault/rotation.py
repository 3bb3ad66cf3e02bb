"""New keys in place of old ones, without anything that was sealed or signed before becoming unreadable."""

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
    derived_public,
    keep_cutoff,
    link_new,
    read_key,
    replace_key,
    secret_key,
    short_id,
)
from app.vault.local_store import sync_directory
from app.vault.signing import Cutoff

Use = Literal["opening", "ledger", "release"]
TOO_YOUNG: Final = (
    "A key retired less than 24 hours ago, and an API that was not restarted since may still seal to it. Wait, or "
    "restart every API, rewrap once more, and say --yes."
)
USES: Final[tuple[Use, ...]] = ("opening", "ledger", "release")


def rotate(directory: Path, use: Use, cutoff: Cutoff | None = None) -> str:
    """Put a new key in the place of the current one; the id of the one that retires.

    ``cutoff``: of the ledger key, what it has signed last; retired ones of which nothing is known end there, too.

    A crash in between leaves the old key in use, or a public key that the next start (or rotation) puts right. An
    opening key retires with its secret, which opens older boxes; of a signing key only the public half is kept.

    Raises:
        VaultError: as :func:`app.vault.keys.create_keys`.
    """
    create_keys(directory)
    secret, public = (directory / name for name in PAIRS[use])
    old, retiring = secret_key(secret), read_key(public)
    if use == "opening":
        link_new(directory / f"opening-{short_id(retiring)}.key", old)
    else:
        link_new(directory / f"{use}-{short_id(retiring)}.pub", retiring)
    if cutoff is not None:
        (directory / f"ledger-{short_id(retiring)}.until").unlink(missing_ok=True)  # of a rotation that was cut short
        for path in directory.glob("ledger-*.pub"):
            keep_cutoff(directory, path.stem.removeprefix("ledger-"), cutoff)
    sync_directory(directory)
    new = secrets.token_bytes(KEY_BYTES)
    replace_key(secret, new)
    replace_key(public, derived_public(secret.name, new))
    sync_directory(directory)
    return short_id(retiring)


GRACE: Final = timedelta(hours=24)
"""How long after a rotation processes may still seal to the key that has retired; uploads last no longer."""


def destroy_retired_opening(directory: Path, retired_for: timedelta = GRACE) -> int:
    """Destroy the opening keys that nothing is sealed to any more; how many there were.

    Raises:
        VaultError: the key in use is not whole, so that the retired ones may be needed; or one of them has not
            been retired for so long.
    """
    if derived_public("opening.key", secret_key(directory / "opening.key")) != read_key(directory / "sealing.pub"):
        raise VaultError
    retired = list(directory.glob("opening-*.key"))
    latest = time.time() - retired_for.total_seconds()
    if any(path.stat().st_mtime > latest for path in retired):
        raise VaultError(TOO_YOUNG)
    for path in retired:
        path.unlink()
    sync_directory(directory)
    return len(retired)
