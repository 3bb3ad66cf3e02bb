"""W3 from the outside: canary values of a private table are found nowhere in the clear."""

import struct
from pathlib import Path

import httpx
import pytest

from tests.e2e.house import COLUMNS, House, ended, job_body, ready_dataset, table, until

DOUBLE = 3.718281828171
AGE = 93
TEXT = "qqcanaryqq"


def canary_table() -> bytes:
    lines = table(500).decode().splitlines()
    lines += [f"{AGE},{DOUBLE!r},a,1", f"{TEXT},1.0,a,0", f"50,1.0,{TEXT},1", f'1,"{TEXT}",a,1', f"{TEXT},{TEXT}"]
    return "\n".join(lines).encode()


def needles() -> list[bytes]:
    doubles = [struct.pack(order + "d", DOUBLE) for order in "<>"]
    singles = [struct.pack(order + "f", DOUBLE) for order in "<>"]
    return [TEXT.encode(), repr(DOUBLE).encode(), repr(DOUBLE)[:9].encode(), *doubles, *singles]


@pytest.fixture(scope="module")
def traces(house: House, owner: httpx.Client) -> list[bytes]:
    """Every byte that leaves or stays after an ingestion, a job and two rejections."""
    dataset = ready_dataset(owner, canary_table(), population="canary")
    job = owner.post("/v1/jobs", json=job_body(dataset)).json()["id"]
    body = ended(owner, job)
    bad = owner.post("/v1/datasets", json={"name": "x"} | {"columns": COLUMNS}).content
    release = f"/v1/releases/{body['release_id']}"
    paths = [f"/v1/datasets/{dataset}{tail}" for tail in ("", "/budget", "/ledger")]
    paths += [f"/v1/jobs/{job}", release, f"{release}/certificate", "/metrics", "/v1/datasets", "/v1/jobs"]
    paths += [f"{release}/points?format={kind}" for kind in ("json", "csv", "parquet", "npz")]
    answers = [owner.get(path) for path in paths]
    found = [answer.content + repr(answer.headers.raw).encode() for answer in answers]
    rejected = f"{TEXT},age\n{TEXT},1\n".encode()
    name = owner.post("/v1/datasets", json=_declared()).json()["id"]
    owner.put(f"/v1/datasets/{name}/content", content=rejected, headers={"Content-Type": "text/csv"})
    until(lambda: owner.get(f"/v1/datasets/{name}").json()["status"] == "rejected", 30)
    found.append(owner.get(f"/v1/datasets/{name}").content)
    return [*found, bad]


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
