"""The secrets of API keys: their form, their public prefix, and the keyed hash that is kept of them.

``cv_<10 characters>_<43 characters>``: the first part names the key and is no secret; the second holds 256 random
bits. Keys of an older form, ``cv_<43 characters>``, work where a keyed hash of them is kept.
"""

import hmac
import re
import secrets
from dataclasses import dataclass, field
from typing import Final

START: Final = "cv_"
_ENTROPY_BYTES: Final = 32
_NAME_CHARACTERS: Final = 10
_OLD_PREFIX_LENGTH: Final = len(START) + 8
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_FORM = re.compile(rf"({START}[{_ALPHABET}]{{{_NAME_CHARACTERS}}})_[A-Za-z0-9_-]{{43}}", re.ASCII)
_OLD_FORM = re.compile(rf"{START}[A-Za-z0-9_-]{{43}}", re.ASCII)
_PURPOSE: Final = b"corevault.api_key\0"


@dataclass(frozen=True, slots=True)
class Secret:
    """What a caller sends; only ``prefix`` may be stored or shown."""

    text: str = field(repr=False)
    prefix: str

    def keyed_hash(self, identity_key: bytes) -> str:
        """HMAC-SHA-256 under a key that lies outside of the database: a stolen table proves no guess."""
        return hmac.digest(identity_key, _PURPOSE + self.text.encode("ascii"), "sha256").hex()


def new_secret() -> Secret:
    prefix = START + "".join(secrets.choice(_ALPHABET) for _ in range(_NAME_CHARACTERS))
    return Secret(f"{prefix}_{secrets.token_urlsafe(_ENTROPY_BYTES)}", prefix)


def parse(text: str) -> Secret | None:
    """The secret that ``text`` spells, if it has the form of one."""
    match = _FORM.fullmatch(text)
    if match is not None:
        return Secret(text, match[1])
    return Secret(text, text[:_OLD_PREFIX_LENGTH]) if _OLD_FORM.fullmatch(text) else None
