"""Hash chains: canonical form, links, locks and key rotation.

The accounts of the ledger, its checkpoints and the audit log are three chains of this kind.
"""

from app.hashchain.encoding import digest, format_instant
from app.hashchain.keys import check_key
from app.hashchain.links import GENESIS, End, hash_entry
from app.hashchain.lock import take_lock

__all__ = ["GENESIS", "End", "check_key", "digest", "format_instant", "hash_entry", "take_lock"]
