"""The worker's side: one JSON document on standard input, one on standard output.

Runs in an isolated environment, without Corevault.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

Answer = Callable[[Any], Any]


def serve(answer: Answer) -> None:
    """Answer the request; everything else that is printed goes to standard error."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w") as reply:
        os.dup2(2, 1)
        json.dump(answer(json.load(sys.stdin)), reply)
