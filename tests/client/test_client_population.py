"""Replies about populations: short texts name the datasets."""

import pytest
from corevault.replies.population import Population


@pytest.mark.parametrize(("count", "names"), [(1, "Ward 2024"), (30, "Ward 2024, …")])
def test_a_text_names_the_datasets(count: int, names: str) -> None:
    """A population without a name has the id of a dataset."""
    dataset = {"id": "ds_1", "name": "Ward 2024", "slots": 10, "limit": None, "deleted": False}
    found = Population.from_json({"population": "ds_1", "dataset_count": count, "slots": 10, "datasets": [dataset]})
    assert found.names == names
    assert repr(found) == f"Population(names='{names}', slots=10)"
