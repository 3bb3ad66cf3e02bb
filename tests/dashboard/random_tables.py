"""Random files with random declarations, made of the characters at which parsers differ."""

import random
from typing import Any, Final

PIECES: Final = (
    *(",", ",", ",", "\n", "\n", "\r\n", "\r", '"', '""', " ", "\t", "\v", "\x00", "\x1c", "\x85", "\u00a0", "\ufeff"),
    *("1", "0", "-0", "1.0", "1e0", ".5", "5.", "1e999", "9007199254740993", "nan", "+", "_", "٣", "true", "FALSE"),
    *("x", "é", "😀"),
)
CATEGORIES: Final = ("1", "1.0", "0", "-0", "true", "false", "x", " 1", "é", '"', "😀")
IMPUTED: Final = {"real": 0, "integer": 1, "binary": True}


def make_cases(count: int, seed: int) -> list[dict[str, Any]]:
    """Make cases in the form of ``checks/cases.json``, without expected outcomes."""
    rng = random.Random(seed)
    return [_make_case(rng) for _ in range(count)]


def _make_case(rng: random.Random) -> dict[str, Any]:
    columns = [_make_column(rng, name) for name in rng.sample(("a", "b", "c"), rng.randint(1, 3))]
    names = [column["name"] for column in columns]
    rng.shuffle(names)
    if rng.random() < 0.2:
        names = rng.choice((names[1:] or names, [*names, "z"], [*names, names[0]]))
    start = rng.choice(("", "\ufeff", "\n")) + ",".join(names) + rng.choice(("\n", "\r\n", "\r"))
    content = (start + "".join(rng.choices(PIECES, k=rng.randint(0, 40)))).encode()
    if rng.random() < 0.1:
        content += bytes([rng.randrange(128, 256)]) + b"\n1,1"
    may_be_unit = columns[0]["type"] == "integer" and "missing" not in columns[0] and rng.random() < 0.5
    return {"columns": columns, "unit": columns[0]["name"] if may_be_unit else None, "hex": content.hex()}


def _make_column(rng: random.Random, name: str) -> dict[str, Any]:
    kind = rng.choice(("real", "integer", "categorical", "binary"))
    column: dict[str, Any] = {"name": name, "type": kind}
    if kind in {"real", "integer"}:
        column |= {"lower": rng.choice((-1, 0)), "upper": rng.choice((1, 5))}
    if kind == "categorical":
        column["categories"] = rng.sample(CATEGORIES, rng.randint(1, 5))
    if rng.random() < 0.3:
        column["missing"] = {"impute": column["categories"][0] if kind == "categorical" else IMPUTED[kind]}
    return column
