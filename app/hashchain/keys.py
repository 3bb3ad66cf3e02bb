"""Rotation of the key that signs chains."""

from app.errors import DependencyUnavailable
from app.vault.signing import Signer


def check_key(signer: Signer, newest_key_id: str | None) -> None:
    """Check that the signer's key is current; a rotation signs every chain with the new key at once.

    ``newest_key_id``: of the key that signed the newest entry of a chain; None for an empty chain.

    Raises:
        DependencyUnavailable: the key has retired.
    """
    if newest_key_id is not None and not signer.ring.knows(newest_key_id):
        raise DependencyUnavailable(
            "The ledger key was rotated, and this process does not have the new one: restart it with the new keys."
        )
