"""The worker's side: requests as JSON lines on standard input, arrays as npz files.

Runs in a peer's environment, which has NumPy but not Corevault. A request names the files with the arrays to read and
to write, with epsilon, delta, seed and settings. The answer is a line with the seconds, or with the error.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
Answer = Callable[[Arrays, Mapping[str, Any]], Arrays]


def serve(answer: Answer) -> None:
    """Answer each request; everything else that the peer prints goes to standard error."""
    warnings.simplefilter("ignore")
    with os.fdopen(os.dup(1), "w", buffering=1) as replies:
        os.dup2(2, 1)
        for line in sys.stdin:
            request = json.loads(line)
            print(json.dumps(_answer_one(answer, request)), file=replies, flush=True)


def _answer_one(answer: Answer, request: Mapping[str, Any]) -> dict[str, Any]:
    with np.load(request["read"]) as file:
        arrays = dict(file)
    start = time.process_time()
    try:
        np.savez(request["write"], **answer(arrays, request))
    except Exception as error:  # noqa: BLE001  (a failure of a peer is a result)
        return {"error": f"{type(error).__name__}: {error}"[:200]}
    return {"seconds": time.process_time() - start}
