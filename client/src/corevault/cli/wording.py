"""Sentences of the client and the server, in the terms of the command line."""

from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any, Final

from corevault.errors import ApiError, BudgetExceeded, CorevaultError, NotFound, Unauthenticated

_NO_KEY: Final = (
    "The server needs a valid API key. None was sent, or it is wrong, expired or revoked. Run corevault login URL, or "
    "set COREVAULT_API_KEY."
)
_PHRASES: Final[tuple[tuple[str, str], ...]] = (
    ("client.datasets.list() shows", "corevault datasets shows"),
    ("pass base_url, or run corevault login.", "pass --url, or run corevault login URL."),
    ("check base_url", "check the address"),
    ("Check base_url", "Check the address"),
    ("base_url must", "The server's address must"),
    ("api_key must", "The API key must"),
    ("idempotency_key must", "--key must"),
    ("epsilons must", "--epsilon must"),
    ("Each of epsilons", "Each --epsilon"),
    ("max_null_share", "--max-null-share"),
    ("pass media_type='text/csv' if it is CSV", "rename it to end in .csv if it is CSV"),
    (", or pass a DataFrame", ""),
    ("Call datasets.resume within 24 hours to continue it.", "The method datasets.resume of the client continues it."),
    ("call datasets.upload first", "run corevault upload first"),
    ("call wait_until_ready again", "run corevault datasets to see when it is ready"),
)
"""Phrases of the client about methods and arguments, and their replacements."""
_OPTIONS: Final[tuple[tuple[str, str], ...]] = (
    ("/model/features", "features"),
    ("/model/target", "target"),
    ("/model/prior/scale", "prior_scale"),
    ("/model/noise_scale", "noise_scale"),
    ("/model/family", "family"),
    ("/privacy", "epsilon"),
    ("/size", "size"),
    ("/method", "method"),
    ("/key_id", "allocation"),
    ("/epsilon", "job"),
    ("/epsilon", "limit"),
    ("/delta", "delta"),
    ("/allocations", "allocation"),
)
"""Members of a request, and the options that set them."""
_LISTS: Final = {
    "release": "corevault releases lists their ids, which start with rel_.",
    "job": "corevault run --no-wait and the dashboard show their ids, which start with job_.",
    "dataset": "corevault datasets lists their names and ids.",
}
"""The kinds of objects that commands name, and where their ids are listed."""


def word_error(error: CorevaultError, options: Namespace | None = None) -> str:
    """The text of an error without its code. It may have several lines."""
    if isinstance(error, Unauthenticated):
        return _NO_KEY
    if isinstance(error, BudgetExceeded):
        return f"{error.detail}\n{_list_figures(error)}"
    if isinstance(error, ApiError) and error.errors:
        return "\n".join(dict.fromkeys(_word_faults(error, options)))
    is_by_server = isinstance(error, ApiError) and bool(error.title)  # the client's errors name the object already
    if isinstance(error, NotFound) and is_by_server and (absent := _name_absent(options)):
        return absent
    text = str(error)
    if isinstance(error, ApiError):
        text = text.replace(f" [{error.code}]", "")
    for old, new in _PHRASES:
        text = text.replace(old, new)
    return text


def _name_absent(options: Namespace | None) -> str:
    """The sentence about an object that the server does not find; empty without a name."""
    given: Mapping[str, Any] = {} if options is None else vars(options)
    kind = next((name for name in _LISTS if isinstance(given.get(name), str)), None)
    return "" if kind is None else f"There is no {kind} {given[kind]} that this key may see; {_LISTS[kind]}"


def _word_faults(error: ApiError, options: Namespace | None) -> Iterator[str]:
    """One line a fault: the option that is wrong, its value, and the server's message."""
    for fault in error.errors:
        place = _name_place(str(fault.get("pointer", "")), options)
        text = str(fault.get("message", ""))
        yield f"{place}: {text}" if place else text


def _name_place(pointer: str, options: Namespace | None) -> str:
    given: Mapping[str, Any] = {} if options is None else vars(options)
    if pointer.startswith("/model") and given.get("model") is not None:
        return f"{given['model']}, {pointer.removeprefix('/model') or '/'}"
    names = [name for start, name in _OPTIONS if pointer.startswith(start) and name in given]
    if not names:
        return pointer
    name = next((each for each in names if given[each] is not None), names[0])
    value, last = given[name], pointer.rpartition("/")[2]
    if isinstance(value, list) and last.isdecimal():
        value = value[int(last)] if int(last) < len(value) else None
    if name in {"features", "target"} and given.get("formula") is not None:
        name = "formula"  # it set the option
    shown = (
        "" if value is None or isinstance(value, list | tuple) else f" {value:g}" if _is_float(value) else f" {value}"
    )
    return f"--{name.replace('_', '-')}{shown}"


def _is_float(value: object) -> bool:
    return isinstance(value, float)


def _list_figures(error: BudgetExceeded) -> str:
    named = (("Requested", error.requested), ("limit", error.limit), ("remaining", error.remaining))
    return ", ".join(f"{name} {figure}" for name, figure in named if figure is not None)
