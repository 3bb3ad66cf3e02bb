"""d3p's DP-VI: a mean-field normal posterior of a logistic regression by noisy stochastic gradients."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from d3p.dputil import approximate_sigma
from d3p.minibatch import subsample_batchify_data
from d3p.random import PRNGKey
from d3p.svi import DPSVI
from numpyro.infer import Trace_ELBO
from numpyro.infer.autoguide import AutoDiagonalNormal

from benchmarks.peers.workers.protocol import Arrays, serve


def answer(arrays: Arrays, request: Any) -> Arrays:
    """Fit once."""
    x, y = jnp.asarray(arrays["x"]), jnp.asarray(arrays["y"])
    scale, settings = 1 / np.sqrt(float(arrays["precision"])), request["settings"]
    rows, steps, batch = len(y), int(settings["steps"]), int(settings["batch"])

    def model(x: Any, y: Any = None) -> None:
        theta = numpyro.sample("theta", dist.Normal(jnp.zeros(x.shape[-1]), scale).to_event(1))
        with numpyro.plate("rows", rows, len(x)):
            numpyro.sample("y", dist.Bernoulli(logits=x @ theta), obs=y)

    rate = batch / rows
    sigma, *_ = approximate_sigma(request["epsilon"], request["delta"], rate, steps, maxeval=20)
    guide = AutoDiagonalNormal(model, init_scale=settings["scale"])
    adam = numpyro.optim.Adam(settings["rate"])
    svi = DPSVI(model, guide, adam, Trace_ELBO(), clipping_threshold=settings["clip"], dp_scale=sigma)
    start, get = subsample_batchify_data((x, y), batch)
    _, batches = start(PRNGKey(request["seed"] % 2**31))
    state = svi.init(PRNGKey(request["seed"] % 2**31 + 1), *get(0, batches))

    def update(number: int, state: Any) -> Any:
        return svi.update(state, *get(number, batches))[0]

    state = jax.jit(lambda state: jax.lax.fori_loop(0, steps, update, state))(state)
    found = svi.get_params(state)
    return {"mean": np.asarray(found["auto_loc"]), "precision": np.diag(np.asarray(found["auto_scale"]) ** -2.0)}


if __name__ == "__main__":
    serve(answer)
