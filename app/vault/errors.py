"""Errors of the vault; their default messages name no byte, object or key."""

from app.errors import CorevaultError


class VaultError(CorevaultError):
    """A sealed object or a key is altered, incomplete or sealed for another use."""

    default = "A sealed object cannot be decrypted: it was altered, or it was sealed for another use."


class ObjectMissing(VaultError):
    """The object does not exist in the store."""

    default = "The object does not exist in the store."
