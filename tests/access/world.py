"""Two tenants: one has every kind of object, and the other's callers may see no object."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx

from app.db import now
from tests.factories import rows
from tests.factories.datasets import everything
from tests.factories.worker import House

SECRETS = ("canary-dataset", "canary-population", "canary-description", "canary-key")
"""Words of the first tenant. Only that tenant, administrators and auditors may see them."""
IDEMPOTENCY_KEY = "canary-idempotency"
MADE_UP = {
    "dataset_id": "ds_01jd0000000000000000000000",
    "job_id": "job_01jd0000000000000000000000",
    "ended_job_id": "job_01jd0000000000000000000000",
    "release_id": "rel_01jd0000000000000000000000",
    "groups_release_id": "rel_01jd0000000000000000000000",
    "key_id": "key_01jd0000000000000000000000",
    "upload_id": "up_01jd0000000000000000000000",
}


@dataclass
class World:
    """``theirs`` maps each kind of id to the first tenant's; ``callers`` are the others."""

    house: House
    client: httpx.Client
    theirs: dict[str, str]
    callers: dict[str, rows.Key | None]

    def call(self, caller: str, method: str, path: str, **options: Any) -> httpx.Response:
        key = self.callers[caller]
        headers = ({} if key is None else key.headers) | options.pop("headers", {})
        return self.client.request(method, path, headers=headers, **options)

    def state(self) -> tuple[dict[str, list[str]], list[str]]:
        """Return all rows and the names of all files, without notes about calls."""
        tables, files = everything(self.house.database, self.house.areas)
        return {name: found for name, found in tables.items() if not name.startswith("audit_")}, files


class SharedWorld:
    """A world that tests use in turn. After a test that has changed it, there is a new one.

    Args:
        open_world: opens a new world.
    """

    def __init__(self, open_world: Callable[[], AbstractContextManager[World]]) -> None:
        self._open_world = open_world
        self._opened = ExitStack()
        self._world: World | None = None

    def close(self) -> None:
        self._opened.close()
        self._world = None

    @contextmanager
    def use(self) -> Iterator[World]:
        world = self._world or self._opened.enter_context(self._open_world())
        self._world = world
        before = _without_sessions(world)
        yield world
        if _without_sessions(world) != before:
            self.close()


def _without_sessions(world: World) -> Any:
    tables, files = world.state()
    return {name: found for name, found in tables.items() if name != "sign_ins"}, files


def _upload(client: httpx.Client, tenant: rows.Key, dataset_id: str) -> str:
    place = f"/v1/datasets/{dataset_id}/uploads"
    answer = client.post(place, json={"media_type": "text/csv"}, headers=tenant.headers)
    return str(answer.json()["id"])


def make_world(house: House, client: httpx.Client) -> World:
    """Make a tenant with a dataset, running and ended jobs, and a private release.

    The dataset is shared with an analyst of the tenant.
    """
    with house.database.write() as tx:
        tenant, helper = (rows.api_key(tx, role, name="canary-key") for role in ("owner", "analyst"))
        ended = {
            "revoked": rows.api_key(tx, "owner", revoked_at=now()),
            "expired": rows.api_key(tx, "owner", expires_at=now() - timedelta(seconds=1)),
        }
        callers = {role: rows.api_key(tx, role) for role in ("admin", "auditor", "owner", "analyst")}
        other = rows.api_key(tx, "admin")
    dataset = house.ready_dataset(
        tenant,
        shared_with=(helper.id,),
        name="canary-dataset",
        description="canary-description",
        population="canary-population",
        releases_public=False,
    )
    house.run(done := house.job(dataset, tenant))
    release = house.read(done).release_id
    assert release is not None
    house.run(grouped := house.job(dataset, tenant, method="dp-groups", privacy={"epsilon": 0.1}, parameters={}))
    groups = house.read(grouped).release_id
    assert groups is not None
    theirs = {
        "groups_release_id": groups,
        "dataset_id": dataset,
        "job_id": house.job(dataset, tenant),
        "ended_job_id": done,
        "release_id": release,
        "key_id": tenant.id,
        "upload_id": _upload(client, tenant, dataset),
    }
    known: dict[str, rows.Key | None] = {"nobody": None, **ended, **callers, "tenant": tenant, "administrator": other}
    return World(house, client, theirs, known)
