"""PyMC models of weighted pseudopoints."""

from typing import Any

from corevault._arguments import import_extra
from corevault.exports.density import Operations, make_log_density
from corevault.exports.whitening import Whitening
from corevault.weighted_model import WeightedModel


def make_pymc_model(model: WeightedModel, whitening: Whitening) -> Any:
    """A ``pymc.Model``; see ``Pseudocoreset.pymc_model``."""
    pm = import_extra("pymc", "pymc", "for its models")
    pt = import_extra("pytensor.tensor", "pymc", "for PyMC models")
    log_density = make_log_density(
        model,
        Operations(
            array=pt.as_tensor_variable,
            exp=pt.exp,
            log1p=pt.log1p,
            softplus=pt.softplus,
            log_ndtr=lambda x: pm.logcdf(pm.Normal.dist(0.0, 1.0), x),
            log_sum_exp=lambda x: pt.logsumexp(pt.concatenate([pt.zeros_like(x[:, :1]), x], axis=1), axis=1),
        ),
    )
    with pm.Model(coords={"parameter": list(model.names)}) as released_model:
        z = pm.Flat("z", shape=len(model.names))
        theta = pm.Deterministic("theta", whitening.centre + pt.dot(whitening.root, z), dims="parameter")
        pm.Potential("log_density", log_density(theta))
        rank = whitening.noise_root.shape[1]
        total = theta + pt.dot(whitening.noise_root, pm.Normal("noise", shape=rank)) if rank else theta + 0.0
        pm.Deterministic("coefficients", total, dims="parameter")
    return released_model
