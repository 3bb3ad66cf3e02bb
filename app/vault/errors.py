"""What can go wrong with sealed bytes. No message says which byte, object or key."""

from app.errors import CorevaultError


class VaultError(CorevaultError):
    """A sealed object, a wrapped key or a key file does not open: altered, incomplete, or another's."""

    default = "A sealed object does not open: it was altered, or belongs elsewhere."


class ObjectMissing(VaultError):
    """The store holds no such object."""

    default = "The store holds no such object."
