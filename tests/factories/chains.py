"""A real account's chain, and every small alteration of it."""

import copy
from collections.abc import Callable, Iterator
from typing import Any, Final

from app.hashchain import digest
from tests.factories import rows
from tests.factories.worker import House

ENTRY: Final = (
    "sequence",
    "at",
    "kind",
    "dataset_id",
    "job_id",
    "body",
    "epsilon_after",
    "entry_hash",
    "previous_hash",
)
CHECKPOINT: Final = (
    *("at", "account_id", "account_sequence", "account_head", "balance_hash", "sequence", "previous_hash"),
    *("checkpoint_hash", "signature", "key_id"),
)
HEAD: Final = ("account_id", "sequence", "head", "balance_hash", "checkpoint", "strict", "signature", "key_id", "end")
Part = dict[str, Any]


def make_account(house: House, owner: rows.Key, analyst: rows.Key) -> str:
    """Make an account with entries of most kinds, the last of which are reservations."""
    dataset = house.ready_dataset(owner, name="census", shared_with=(analyst.id,))
    house.run(house.job(dataset, owner))
    with house.client() as client:
        budget = {"epsilon": 3.0, "delta": 1e-7}
        client.put(f"/v1/datasets/{dataset}/budget", json=budget, headers=owner.headers).raise_for_status()
        body = {"allocations": [{"key_id": analyst.id, "epsilon": 1.0}]}
        client.patch(f"/v1/datasets/{dataset}", json=body, headers=owner.headers).raise_for_status()
    for _ in range(2):
        house.job(dataset, analyst)
    return dataset


def _change(value: Any) -> Any:
    """Change a value as little as possible, and keep its type."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 2.0**-40
    if isinstance(value, str):
        return value[:-1] + ("b" if value.endswith("a") else "a") if value else "a"
    if isinstance(value, list):
        return [_change(value[0]), *value[1:]] if value else [None]
    name = next(iter(value), None)
    return {**value, name: _change(value[name])} if name is not None else {"added": None}


def alter(part: Part) -> Iterator[tuple[str, Part]]:
    """Yield each alteration of one column, and each missing or exchanged row."""
    for rows_of, columns in (("entries", ENTRY), ("checkpoints", CHECKPOINT)):
        for index in range(len(part[rows_of])):
            for column in columns:
                altered = copy.deepcopy(part)
                altered[rows_of][index][column] = _change(altered[rows_of][index][column])
                yield f"{rows_of} {index} {column}", altered
            if rows_of == "entries":
                replaced = copy.deepcopy(part)
                replaced["entries"][index]["epsilon_after"] += 0.5
                replaced["entries"][index]["entry_hash"] = _hash(replaced["entries"][index])
                yield f"entries {index} replaced", replaced
            removed = copy.deepcopy(part)
            del removed[rows_of][index]
            # The last of several checkpoints is known by the signed head; an earlier one is linked to other accounts.
            if rows_of == "entries" or index == len(part[rows_of]) - 1:
                yield f"{rows_of} {index} missing", removed
            if index:
                swapped = copy.deepcopy(part)
                swapped[rows_of][index - 1 : index + 1] = reversed(swapped[rows_of][index - 1 : index + 1])
                yield f"{rows_of} {index} exchanged", swapped
    for column in HEAD:
        yield f"head {column}", {**part, "head": {**part["head"], column: _change(part["head"].get(column, False))}}
    yield "head missing", {**part, "head": None, "checkpoints": []}
    yield "account", {**part, "account_id": _change(part["account_id"])}
    for column in ("key_id", "public_key"):
        yield f"keys {column}", {**part, "keys": [{**part["keys"][0], column: _change_start(part["keys"][0][column])}]}
    yield "keys until", {**part, "keys": [{**part["keys"][0], "until": 0}]}
    yield "keys missing", {**part, "keys": []}


def _hash(entry: dict[str, Any]) -> str:
    return digest({name: value for name, value in entry.items() if name != "entry_hash"})


def _change_start(text: str) -> str:
    return ("b" if text.startswith("a") else "a") + text[1:]


def rehash(part: Part, change: Callable[[Part], None]) -> Part:
    """Alter a chain as somebody without the key can: all hashes are computed again."""
    altered = copy.deepcopy(part)
    change(altered)
    previous, heads = "0" * 64, dict[int, str]()
    for number, entry in enumerate(altered["entries"], start=1):
        entry["sequence"], entry["previous_hash"] = number, previous
        entry["entry_hash"] = _hash(entry)
        previous = heads[number] = entry["entry_hash"]
    for mark in altered["checkpoints"]:
        mark["account_head"] = heads.get(mark["account_sequence"], previous)
        content = {name: mark[name] for name in CHECKPOINT if name not in {"checkpoint_hash", "signature", "key_id"}}
        mark["checkpoint_hash"] = digest(content)
    altered["head"]["end"] = {"sequence": len(altered["entries"]), "entry_hash": previous}
    altered["head"]["head"] = heads.get(altered["head"]["sequence"], previous)
    return altered
