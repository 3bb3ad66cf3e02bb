"""``client.keys``: API keys (admin)."""

from datetime import datetime

from corevault._arguments import write_time
from corevault._http import Http, quote_segment
from corevault._ids import read_id
from corevault._io import blocking
from corevault.pages import Page, fetch_page
from corevault.replies.key import ApiKey


class AsyncKeys:
    """The methods of ``Keys`` for an ``AsyncClient``. Each is awaited.

    >>> admin.keys.create("eve", "analyst").role
    'analyst'
    """

    def __init__(self, http: Http) -> None:
        self._http = http

    async def create(self, name: str, role: str, *, expires_at: datetime | None = None) -> ApiKey:
        """Creates a key; only this reply holds its secret. ``role`` is admin, owner, analyst or auditor.

        The SDK does not retry it, because a replay omits the secret. After a broken connection, look for the key in the
        list, and rotate it if it is there.

        >>> created = admin.keys.create("ben", "auditor")
        >>> created.key.startswith("cv_")
        True
        """
        body = {"name": name, "role": role}
        if (end := write_time(expires_at, "expires_at")) is not None:
            body["expires_at"] = end
        return ApiKey.from_json(await self._http.send_once("POST", "/v1/api-keys", body))

    async def list(self, *, limit: int | None = None) -> Page[ApiKey]:
        """All keys, without their secrets.

        >>> "owner" in {key.role for key in admin.keys.list()}
        True
        """
        return await fetch_page(self._http, "/v1/api-keys", ApiKey, {"limit": limit})

    async def rotate(self, key_id: str | ApiKey) -> ApiKey:
        """Replaces the secret of a key; the old secret stops working. Not retried, as for ``create``.

        >>> created = admin.keys.create("cleo", "analyst")
        >>> admin.keys.rotate(created).key != created.key
        True
        """
        return ApiKey.from_json(
            await self._http.send_once("POST", f"/v1/api-keys/{quote_segment(read_id(key_id, ApiKey))}/rotate")
        )

    async def revoke(self, key_id: str | ApiKey) -> None:
        """Revokes a key for good.

        >>> admin.keys.revoke(admin.keys.create("dan", "analyst"))
        """
        await self._http.send_once("DELETE", f"/v1/api-keys/{quote_segment(read_id(key_id, ApiKey))}")


class Keys:
    """API keys. Only an admin's key may create, list, rotate and revoke them.

    >>> admin.keys.create("ana", "analyst").role
    'analyst'
    """

    def __init__(self, calls: AsyncKeys) -> None:
        self._calls = calls

    create = blocking(AsyncKeys.create)
    list = blocking(AsyncKeys.list)
    rotate = blocking(AsyncKeys.rotate)
    revoke = blocking(AsyncKeys.revoke)
