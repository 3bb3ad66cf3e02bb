"""W3 from the outside: canary values of a private table are found nowhere in the clear."""

import struct
from pathlib import Path

import httpx
import pytest

from tests.e2e.house import COLUMNS, House, ended, job_body, ready_dataset, table, until

DOUBLE = 3.718281828171
AGE = 93
TEXT = "qqcanaryqq"
PERSON = 271_828_182_845


def canary_table() -> bytes:
    lines = table(500).decode().splitlines()
    lines += [f"{AGE},{DOUBLE!r},a,1", f"{TEXT},1.0,a,0", f"50,1.0,{TEXT},1", f'1,"{TEXT}",a,1', f"{TEXT},{TEXT}"]
    return "\n".join(lines).encode()


def people_table() -> bytes:
    """Three rows of one person, whose name is spelt in three ways, among those of others."""
    lines = ["person,age,dose,group,sick", *(f"{i % 90},50,{i / 400!r},b,{i % 2}" for i in range(400))]
    lines[100:100] = [f"{PERSON},{AGE},{DOUBLE!r},a,1", f"0{PERSON},50,1.0,a,0"]
    return "\n".join([*lines, f"{PERSON}.0,50,{TEXT},a,1"]).encode()


def needles() -> list[bytes]:
    doubles = [struct.pack(order + "d", value) for order in "<>" for value in (DOUBLE, PERSON)]
    singles = [struct.pack(order + "f", DOUBLE) for order in "<>"]
    whole = [struct.pack(order + "q", PERSON) for order in "<>"]
    words = [TEXT.encode(), repr(DOUBLE).encode(), repr(DOUBLE)[:9].encode(), str(PERSON).encode()]
    return [*words, *doubles, *singles, *whole]


@pytest.fixture(scope="module")
def traces(house: House, owner: httpx.Client) -> list[bytes]:
    """Every byte that leaves or stays after two ingestions, a job on each and two rejections."""
    dataset = ready_dataset(owner, canary_table(), population="canary")
    person = {"name": "person", "type": "integer", "lower": 0, "upper": 10**12}
    unit = {"kind": "column", "column": "person", "max_rows": 5}
    people = ready_dataset(owner, people_table(), columns=[person, *COLUMNS], privacy_unit=unit, slots=500)
    bad = owner.post("/v1/datasets", json={"name": "x"} | {"columns": COLUMNS}).content
    return [*_after_a_job(owner, dataset), *_after_a_job(owner, people), *_after_a_rejection(owner), bad]


def _after_a_job(owner: httpx.Client, dataset: str) -> list[bytes]:
    job = owner.post("/v1/jobs", json=job_body(dataset)).json()["id"]
    body = ended(owner, job)
    assert body["status"] == "succeeded", body
    release = f"/v1/releases/{body['release_id']}"
    paths = [f"/v1/datasets/{dataset}{tail}" for tail in ("", "/budget", "/ledger")]
    paths += [f"/v1/jobs/{job}", release, f"{release}/certificate", "/metrics", "/v1/datasets", "/v1/jobs"]
    paths += [f"{release}/points?format={kind}" for kind in ("json", "csv", "parquet", "npz")]
    answers = [owner.get(path) for path in paths]
    return [answer.content + repr(answer.headers.raw).encode() for answer in answers]


def _after_a_rejection(owner: httpx.Client) -> list[bytes]:
    rejected = f"{TEXT},age\n{TEXT},1\n".encode()
    name = owner.post("/v1/datasets", json=_declared()).json()["id"]
    owner.put(f"/v1/datasets/{name}/content", content=rejected, headers={"Content-Type": "text/csv"})
    until(lambda: owner.get(f"/v1/datasets/{name}").json()["status"] == "rejected", 30)
    return [owner.get(f"/v1/datasets/{name}").content]


def _declared() -> dict[str, object]:
    columns = [{"name": "age", "type": "integer", "lower": 0, "upper": 100}]
    unit = {"kind": "row"}
    budget = {"epsilon": 1.0}
    return {
        "name": "y",
        "sensitivity": "private",
        "columns": columns,
        "privacy_unit": unit,
        "slots": 9,
        "budget": budget,
    }


def test_no_answer_holds_a_canary(traces: list[bytes]) -> None:
    """W3: responses, headers, metrics, problem details, releases."""
    for needle in needles():
        assert not any(needle in trace for trace in traces)


def test_no_file_and_no_file_name_holds_a_canary(house: House, traces: list[bytes]) -> None:
    """W3: database, broker messages, sealed uploads, tables, logs, file names."""
    for path in house.data.parent.rglob("*"):
        assert TEXT not in path.name
        if path.is_file():
            content = _read(path)
            for needle in needles():
                assert needle not in content, path.name


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
