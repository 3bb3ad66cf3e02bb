"""Evaluates the log density of a Stan program in NumPy.

It reads the part of the language that the client writes: declarations, assignments, ``target +=``, and ``for`` loops.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp


class Value(np.ndarray[Any, np.dtype[np.float64]]):
    """An array with Stan's operators: ``*`` multiplies matrices, ``%`` and ``//`` go element by element, from 1."""

    def __mul__(self, other: Any) -> Any:
        is_product = np.ndim(other) > 0
        return np.matmul(self, other) if is_product else np.multiply(self, other)

    def __rmul__(self, other: Any) -> Any:
        return np.multiply(other, self)

    def __mod__(self, other: Any) -> Any:
        return np.multiply(self, other)

    def __floordiv__(self, other: Any) -> Any:
        return np.divide(self, other)

    def __getitem__(self, place: Any) -> Any:
        return super().__getitem__(place - 1 if isinstance(place, int) else place)


def make(values: Any) -> Value:
    """``values`` as an array of Stan."""
    return np.asarray(values, dtype=np.float64).view(Value)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "append_col": lambda first, rest: np.concatenate([[first], rest]),
    "dot_product": lambda a, b: float(np.dot(np.asarray(a), np.asarray(b))),
    "dot_self": lambda a: float(np.asarray(a) @ np.asarray(a)),
    "exp": np.exp,
    "head": lambda values, count: make(np.asarray(values)[:count]),
    "log1p": np.log1p,
    "log1p_exp": lambda values: np.logaddexp(0.0, values),
    "log_sum_exp": lambda values: float(logsumexp(np.asarray(values))),
    "std_normal_lcdf": lambda value: float(log_ndtr(value)),
    "tail": lambda values, count: make(np.asarray(values)[len(values) - count :]),
    "to_matrix": lambda values, rows, columns: make(np.asarray(values).reshape((rows, columns), order="F")),
    "to_vector": lambda values: values,
}


def evaluate(code: str, data: dict[str, Any], z: Any) -> tuple[float, Any]:
    """The log density of the program at ``z``, and its ``theta``."""
    _check_declared(code, data)
    names: dict[str, Any] = {
        **FUNCTIONS,
        **{name: make(value) if isinstance(value, list) else value for name, value in data.items()},
        "z": make(z),
        "target": 0.0,
    }
    lines = [*_read_block(code, "transformed parameters"), *_read_block(code, "model")]
    exec("\n".join(_translate(lines)), names)  # a program that the client has written
    return names["target"], names["theta"]


def _check_declared(code: str, data: dict[str, Any]) -> None:
    declared = {re.findall(r"(\w+);", line)[0] for line in _read_block(code, "data")}
    assert declared == set(data), "the data and their declarations differ"


def _read_block(code: str, name: str) -> list[str]:
    found = re.search(rf"^{name} \{{\n(.*?)^\}}", code, re.MULTILINE | re.DOTALL)
    assert found, f"there is no block {name}"
    return [line for line in (each.partition("//")[0].rstrip() for each in found[1].splitlines()) if line]


def _translate(lines: list[str]) -> list[str]:
    translated, depth = [], 0
    for line in (each.strip() for each in lines):
        if line == "}":
            depth -= 1
            continue
        loop = re.fullmatch(r"for \((\w+) in 1:(\w+)\) \{", line)
        if loop:
            translated.append("    " * depth + f"for {loop[1]} in range(1, {loop[2]} + 1):")
            depth += 1
            continue
        statement = re.sub(r"^(?:vector|matrix)\[[^]]*\] ", "", line.removesuffix(";"))
        statement = statement.replace(".*", "%").replace("./", "//").replace(" | )", ")")
        translated.append("    " * depth + statement)
    return translated
