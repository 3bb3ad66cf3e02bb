"""API and worker with separate S3 credentials and the policies of ``deploy/s3``.

The test server enforces the policies.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.db import Database
from app.errors import DependencyUnavailable
from app.vault.areas import WorkerAreas
from app.vault.errors import ObjectMissing
from app.vault.marks import MarkName, Marks, open_marks
from app.vault.s3_store import S3Store
from app.vault.store import ObjectStore, draw_name
from app.vault.stores import open_store
from support.servers import S3
from tests.factories import rows
from tests.factories.datasets import declared, entries, uploaded
from tests.factories.representations import REPRESENTATIONS
from tests.factories.s3_users import MARK_PREFIX, POLICIES, PREFIX, User, enforce, new_user, policy
from tests.factories.services import areas_at, worker_areas_at
from tests.factories.worker import House, job_body, make_house

pytestmark = pytest.mark.services

TABLE = b"age,hours,sex,income_gt_50k\n20,40,Male,1\n30,50,Female,0\n"
CHEAP = {"noise_multiplier": 30.0, "sampling_rate": 1.0, "iterations": 2}
ALLOWED = {
    "incoming": {"api": {"put", "read", "delete"}, "worker": {"read", "delete"}},
    "released": {"api": {"read"}, "worker": {"put", "read", "delete"}},
    "wrapped-keys": {"api": {"put", "read", "delete"}, "worker": {"put", "read", "delete"}},
    "vault": {"api": set[str](), "worker": {"put", "read", "delete"}},
    "marks": {"api": {"read"}, "worker": {"put", "read", "delete"}},
    "elsewhere": {"api": set[str](), "worker": set[str]()},
}


@dataclass(frozen=True)
class Bucket:
    """A server that enforces policies, and its users; ``operator`` may do everything."""

    url: str
    api: User
    worker: User
    operator: User

    def marks(self, user: User) -> Marks:
        with user.opens_stores():
            return open_marks(self.url.replace(f"/{PREFIX}?", f"/{MARK_PREFIX}?"))

    def areas(self, user: User) -> WorkerAreas:
        with user.opens_stores():
            return worker_areas_at(self.url)


def _started(server: S3, policies: dict[str, dict[str, object]]) -> Bucket:
    everything = {"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}], "Version": "2012-10-17"}
    users = {name: new_user(server, name, document) for name, document in policies.items()}
    operator = new_user(server, "operator", everything)
    enforce(server)
    url = f"s3://{server.bucket}/{PREFIX}?endpoint={server.endpoint}&region=us-east-1"
    return Bucket(url, users["api"], users["worker"], operator)


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with S3() as server:
        yield _started(server, {name: policy(name, server.bucket) for name in ("api", "worker")})


@pytest.fixture
def house(database: Database, tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> House:
    """The API with one credential; the worker and its child processes with the other."""
    for name, value in bucket.worker.environment.items():
        monkeypatch.setenv(name, value)
    house = make_house(database, tmp_path, bucket.url)
    with bucket.api.opens_stores():
        services = replace(house.services, areas=areas_at(bucket.url))
    return replace(house, services=services)


def test_each_credential_allows_everything_its_service_needs(house: House, owner: rows.Key, bucket: Bucket) -> None:
    """W1: from an upload to its release, and from a deletion to an empty bucket."""
    with house.client() as api:
        dataset_id = declared(api, owner, slots=100)["id"]
        uploaded(api, owner, dataset_id, TABLE)
        house.work()
        body = job_body(dataset_id, privacy=CHEAP)
        job_id = api.post("/v1/jobs", json=body, headers=owner.headers).json()["id"]
        house.work()
        release_id = api.get(f"/v1/jobs/{job_id}", headers=owner.headers).json()["release_id"]
        assert api.get("/health/ready").status_code == 200
        for name in ("json", "csv", "parquet", "npz"):
            assert api.get(f"/v1/releases/{release_id}/points?format={name}").status_code == 200
        house.sweeper.sweep()
        uploaded(api, owner, dataset_id, TABLE + b"40,60,Male,0\n")
        assert api.delete(f"/v1/datasets/{dataset_id}", headers=owner.headers).status_code == 200
    for _ in range(2):  # a sweep begins after the end of the last one
        house.sweeper.sweep()
    left = bucket.areas(bucket.operator)
    kept = {name for name, content in entries(left.incoming).items() if content}
    assert (kept, [content for content in entries(left.vault).values() if content]) == (set(), [])
    assert [content for content in entries(left.keys.store).values() if content] == []
    assert len([content for content in entries(left.released).values() if content]) == len(REPRESENTATIONS)


def test_large_objects_need_no_further_rights(bucket: Bucket) -> None:
    """A multipart object takes one request for each part, and one to delete it."""
    api, worker = (bucket.areas(user).incoming for user in (bucket.api, bucket.worker))
    assert isinstance(api, S3Store)
    api._piece_bytes = 1_000
    name = _put(api, 2_500)
    with worker.open(name) as file:
        assert file.read() == b"x" * 2_500
    worker.delete(name)
    for store in (api, worker):
        with pytest.raises(ObjectMissing):
            store.open(name)
    with api.create() as given_up:
        given_up.write(b"x" * 2_500)
    assert [content for content in entries(bucket.areas(bucket.operator).incoming).values() if content] == []


@pytest.mark.parametrize("area", ALLOWED)
@pytest.mark.parametrize("who", ["api", "worker"])
def test_every_other_access_is_refused(bucket: Bucket, who: str, area: str) -> None:
    """W1: the API cannot read the vault, and the worker cannot write uploads."""
    mine = _area(bucket, getattr(bucket, who), area)
    name = _put(_area(bucket, bucket.operator, area), 10)
    calls: dict[str, Callable[[], object]] = {
        "put": lambda: _put(mine, 10),
        "read": lambda: mine.open(name).read(),
        "delete": lambda: mine.delete(name),
    }
    assert {call for call, act in calls.items() if _may(act)} == ALLOWED[area][who]


def test_workers_replace_marks_and_the_api_reads_them(bucket: Bucket) -> None:
    """The worker also removes the older mark of the account."""
    older, newer = (MarkName("acc_1", sequence, "0" * 64) for sequence in (1, 2))
    marks, of_api = bucket.marks(bucket.worker), bucket.marks(bucket.api)
    marks.put(older, b"older")
    marks.put(newer, b"newer")
    assert of_api.names() == {newer}
    assert of_api.read(newer) == b"newer"
    assert not _may(lambda: of_api.put(MarkName("acc_1", 3, "0" * 64), b"x"))


@pytest.mark.parametrize("who", ["api", "worker"])
def test_the_policy_files_grant_exactly_these_rights(who: str) -> None:
    document = json.loads((POLICIES / f"{who}.json").read_text())
    granted = {
        (action.removeprefix("s3:"), resource.split("/")[2])
        for statement in document["Statement"]
        for action in statement["Action"]
        for resource in statement["Resource"]
        if "/" in resource
    }
    words = {"put": "PutObject", "read": "GetObject", "delete": "DeleteObject"}
    needed = {(words[call], area) for area, of in ALLOWED.items() for call in of[who]}
    assert granted == needed


def test_an_unknown_credential_is_refused(bucket: Bucket) -> None:
    stranger = User("AKIAnobody", "of-no-use")
    assert not _may(lambda: _put(bucket.areas(stranger).incoming, 10))


def _area(bucket: Bucket, user: User, area: str) -> ObjectStore:
    prefix = {"elsewhere": "elsewhere", "marks": f"{MARK_PREFIX}/marks"}.get(area, f"{PREFIX}/{area}")
    url = bucket.url.replace(f"/{PREFIX}?", f"/{prefix}?")
    with user.opens_stores():
        return open_store(url)


def _put(store: ObjectStore, size: int) -> str:
    with store.create(draw_name()) as writer:
        writer.write(b"x" * size)
        return writer.publish()


def _may(act: Callable[[], object]) -> bool:
    try:
        act()
    except DependencyUnavailable:
        return False
    return True
