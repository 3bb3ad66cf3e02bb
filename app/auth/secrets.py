"""Secrets of API keys: their form, public prefix and keyed hash.

The form is ``cv_<10 characters>_<43 characters>``. The first part is public and identifies the key. The second part
has 256 random bits. Keys of an older form, ``cv_<43 characters>``, work if a keyed hash of them is stored.
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
    """The secret of an API key. Only ``prefix`` may be stored or shown."""

    text: str = field(repr=False)
    prefix: str

    def keyed_hash(self, identity_key: bytes) -> str:
        """Compute the HMAC-SHA-256 of the secret.

        The identity key is not in the database, so a stolen table confirms no guess.
        """
        return hmac.digest(identity_key, _PURPOSE + self.text.encode("ascii"), "sha256").hex()


def generate_secret() -> Secret:
    prefix = START + "".join(secrets.choice(_ALPHABET) for _ in range(_NAME_CHARACTERS))
    return Secret(f"{prefix}_{secrets.token_urlsafe(_ENTROPY_BYTES)}", prefix)


def parse(text: str) -> Secret | None:
    """Parse a secret; None for text of another form."""
    match = _FORM.fullmatch(text)
    if match is not None:
        return Secret(text, match[1])
    return Secret(text, text[:_OLD_PREFIX_LENGTH]) if _OLD_FORM.fullmatch(text) else None
