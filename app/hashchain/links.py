"""The links of a hash chain: each entry contains the hash of the one before.

So no entry can be altered or removed without a change of all later hashes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.hashchain.encoding import digest

GENESIS: Final = "0" * 64
"""The previous hash of a chain's first entry."""


def hash_entry(sequence: int, previous_hash: str | None, content: Mapping[str, Any]) -> str:
    """SHA-256 of an entry's position and content, in hexadecimal.

    Raises:
        rfc8785.CanonicalizationError: JSON cannot express the content.
    """
    return digest({**content, "sequence": sequence, "previous_hash": previous_hash})


@dataclass(frozen=True, slots=True)
class End:
    """The newest entry of a chain: its sequence number and hash. The default is the end of an empty chain."""

    sequence: int = 0
    entry_hash: str = GENESIS

    def extend(self, content: Mapping[str, Any], *, above: int = 0) -> "End":
        """The end after one more entry; its sequence number is also higher than ``above``."""
        sequence = max(self.sequence, above) + 1
        return End(sequence, hash_entry(sequence, self.entry_hash, content))

    def is_continued_by(
        self, sequence: int, previous_hash: str | None, entry_hash: str | None, content: Mapping[str, Any]
    ) -> bool:
        """Whether a stored entry follows this one and its hash is correct. Sequence numbers may have gaps."""
        follows = sequence > self.sequence and previous_hash == self.entry_hash
        return follows and entry_hash == hash_entry(sequence, previous_hash, content)
