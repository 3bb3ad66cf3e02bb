"""``client.keys``: API keys (admin)."""

from datetime import datetime

from corevault._arguments import what_came
from corevault._http import Http, segment
from corevault._ids import id_of
from corevault.errors import WrongType
from corevault.pages import Page, fetch_page
from corevault.replies.key import ApiKey


class Keys:
    """Creates, lists, rotates and revokes API keys. Only an admin's key may."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def create(self, name: str, role: str, *, expires_at: datetime | None = None) -> ApiKey:
        """Creates a key; its ``key`` is shown only now. ``role`` is admin, owner, analyst or auditor.

        Never repeated by the SDK: the replay of a creation omits the secret, so after a broken connection
        look into the list and rotate what you find.
        """
        body = {"name": name, "role": role}
        if not isinstance(expires_at, datetime | None):
            raise WrongType(f"expires_at must be a datetime with a time zone; {what_came(expires_at)}.")
        if expires_at is not None:
            body["expires_at"] = expires_at.isoformat()
        return ApiKey.from_json(self._http.once("POST", "/v1/api-keys", body))

    def list(self, *, limit: int | None = None) -> Page[ApiKey]:
        """All keys, without their secrets."""
        return fetch_page(self._http, "/v1/api-keys", ApiKey, {"limit": limit})

    def rotate(self, key_id: str | ApiKey) -> ApiKey:
        """A new secret under the same id; the old one ends. Never repeated, as ``create``."""
        return ApiKey.from_json(self._http.once("POST", f"/v1/api-keys/{segment(id_of(key_id, ApiKey))}/rotate"))

    def revoke(self, key_id: str | ApiKey) -> None:
        """Ends a key."""
        self._http.once("DELETE", f"/v1/api-keys/{segment(id_of(key_id, ApiKey))}")
