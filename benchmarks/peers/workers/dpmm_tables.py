"""Synthetic tables by MST and AIM from dpmm, on integer codes."""

import sys
from typing import Any

import pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
from numpy.random import RandomState

from benchmarks.peers.workers.protocol import Arrays, serve

MODELS = {"mst": MSTGM, "aim": AIMGM}


def answer(arrays: Arrays, request: Any) -> Arrays:
    """Fit once, and draw as many rows as the table has."""
    codes, sizes = arrays["codes"], arrays["sizes"]
    names = [f"c{place}" for place in range(len(sizes))]
    kind, state = sys.argv[1], RandomState(request["seed"])
    settings = request["settings"]
    more = (
        {"max_model_size": settings["megabytes"], "compress": True}
        if kind == "aim"
        else {"n_iters": int(settings["iterations"])}
    )
    model = MODELS[kind](epsilon=request["epsilon"], delta=request["delta"], random_state=state, n_jobs=1, **more)
    model.set_domain(dict(zip(names, map(int, sizes), strict=True)))
    model.set_random_state(state)
    table = pd.DataFrame(codes, columns=names)
    model.fit(table)
    return {"codes": model.generate(n_records=len(table))[names].to_numpy()}


if __name__ == "__main__":
    serve(answer)
