"""Forms that take effect once, even if a double click sends them twice."""

import hashlib
import hmac
import re
import secrets
from typing import Final

from app.dashboard.forms import Form
from app.dashboard.rendering import PREFIX
from app.errors import InvalidRequest
from app.http.requests.idempotency import IdempotentRequest
from app.services import Services

_KEY: Final = re.compile(r"[A-Za-z0-9_-]{20,64}", re.ASCII)


def draw_form_key() -> str:
    """Draw the key of a form, for its hidden field ``once``."""
    return secrets.token_urlsafe(24)


def read_once(services: Services, form: Form, name: str, content: str) -> IdempotentRequest:
    """Read the form's key. Of ``content``, the meaning of the form, only a keyed hash is recorded.

    Raises:
        InvalidRequest: the form has no valid key.
    """
    key = form.text("once")
    if _KEY.fullmatch(key) is None:
        raise InvalidRequest("The form is not complete. Open the page again, and then send the form.")
    message = f"corevault.{name}_form\0{content}".encode()
    return IdempotentRequest(
        key, f"POST {PREFIX}/{name}", hmac.new(services.identity_key, message, hashlib.sha256).hexdigest()
    )
