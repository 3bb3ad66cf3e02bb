"""Fields of the form that prices and submits a job."""

from typing import Any

import httpx


def make_fields(dataset: str, **changes: Any) -> dict[str, Any]:
    typed = {
        "dataset_id": dataset,
        "family": "logistic-regression",
        "target": "income_gt_50k",
        "features": ["age", "sex"],
        "prior_scale": "1",
        "size": "20",
        "epsilon": "0.5",
    }
    return typed | changes


def read_once(answer: httpx.Response) -> str:
    return answer.text.partition('name="once" value="')[2].partition('"')[0]
