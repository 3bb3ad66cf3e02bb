"""W9, end to end: clients compete for one budget."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import httpx
import pytest

from tests.e2e.house import House, job_body, ready_dataset, table, wait_for_job

pytestmark = [pytest.mark.process, pytest.mark.long]

CLIENTS, RACES = 24, 10


@pytest.mark.timeout(240)
def test_one_of_24_concurrent_jobs_is_admitted(house: House, owner: httpx.Client) -> None:
    """W9: each costs 0.3 of a limit of 0.4; one is admitted, and the balance is right afterwards."""
    for race in range(RACES):
        dataset = ready_dataset(
            owner, table(50 + race), population=f"race-{race}", budget={"epsilon": 0.4, "delta": 1e-6}
        )
        answers = _race(house, owner, dataset)
        winners = [answer for answer in answers if answer.status_code == 202]
        losers = [answer for answer in answers if answer.status_code == 409]
        assert (len(winners), len(losers)) == (1, CLIENTS - 1), [answer.status_code for answer in answers]
        assert {answer.json()["code"] for answer in losers} == {"budget_exceeded"}
        job = wait_for_job(owner, winners[0].json()["id"])
        budget = owner.get(f"/v1/datasets/{dataset}/budget").json()
        assert budget["spent"]["epsilon"] == pytest.approx(job["cost"]["epsilon"])
        assert budget["reserved"]["epsilon"] == 0
        assert budget["jobs"] == {"settled": 1, "reserved": 0, "refused": CLIENTS - 1}


def _race(house: House, owner: httpx.Client, dataset: str) -> list[httpx.Response]:
    start = Barrier(CLIENTS)
    key = owner.headers["Authorization"].removeprefix("Bearer ")

    def run() -> httpx.Response:
        with house.client(key) as client:
            client.get("/health/live")  # opens the connection, and does not count for the key's rate limit
            start.wait()
            return client.post("/v1/jobs", json=job_body(dataset))

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [future.result() for future in [pool.submit(run) for _ in range(CLIENTS)]]
