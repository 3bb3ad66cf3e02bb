"""Fits one stored release with one engine, in the environment of ``benchmarks.engines``.

``python engine_fits.py ENGINE FOLDER`` prints a JSON object: the largest difference to the client's posterior of means,
in standard deviations, and of widths; the leapfrog steps of a draw; and the seconds of processor time.
"""

import importlib
import json
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from corevault import Pseudocoreset, Release
from corevault.belief import read_belief
from corevault.pseudocoreset import from_npz
from numpy.typing import NDArray

CHAINS, WARMUP, DRAWS = 4, 500, 1000
Samples = tuple[NDArray[np.float64], float, float]
"""Draws ``(CHAINS * DRAWS, D)``, leapfrog steps of a draw, and seconds of processor time."""


def load(folder: Path) -> Pseudocoreset:
    """The release in ``folder``."""
    release = Release.from_json(json.loads((folder / "release.json").read_text()))
    belief = folder / "belief.npz"
    stated = read_belief(belief.read_bytes()) if belief.exists() else None
    return from_npz(release, (folder / "points.npz").read_bytes(), stated)


def sample_numpyro(core: Pseudocoreset) -> Samples:
    """NUTS of NumPyro, in double precision."""
    jax, numpyro, infer = (importlib.import_module(name) for name in ("jax", "numpyro", "numpyro.infer"))
    numpyro.enable_x64()
    start = _count_seconds()
    options: dict[str, Any] = {"num_chains": CHAINS, "chain_method": "sequential", "progress_bar": False}
    mcmc = infer.MCMC(infer.NUTS(core.numpyro_model()), num_warmup=WARMUP, num_samples=DRAWS, **options)
    mcmc.run(jax.random.key(1), extra_fields=("num_steps",))
    draws = np.asarray(mcmc.get_samples()["coefficients"])
    return draws, float(np.mean(mcmc.get_extra_fields()["num_steps"])), _count_seconds() - start


def sample_pymc(core: Pseudocoreset) -> Samples:
    """NUTS of PyMC."""
    pymc = importlib.import_module("pymc")
    start = _count_seconds()
    options: dict[str, Any] = {"cores": 1, "progressbar": False, "random_seed": 1, "compute_convergence_checks": False}
    with core.pymc_model():
        trace = pymc.sample(DRAWS, tune=WARMUP, chains=CHAINS, **options)
    draws = trace["posterior"]["coefficients"].to_numpy().reshape(CHAINS * DRAWS, -1)
    return draws, float(trace["sample_stats"]["n_steps"].mean()), _count_seconds() - start


def sample_stan(core: Pseudocoreset) -> Samples:
    """NUTS of Stan, by PyStan. The seconds leave out the compilation."""
    compiler: Any = importlib.import_module("httpstan.compile")
    compiler.subprocess = SimpleNamespace(run=_run_without_limit)  # its limit is one second
    stan, aiohttp = importlib.import_module("stan"), importlib.import_module("aiohttp")
    sessions: Any = importlib.import_module("aiohttp.client")
    sessions.DEFAULT_TIMEOUT = aiohttp.ClientTimeout(total=None)  # a compiler may take minutes
    program = core.stan()
    built = stan.build(program.code, data=program.data, random_seed=1)
    start = _count_seconds()
    fit = built.sample(num_chains=CHAINS, num_warmup=WARMUP, num_samples=DRAWS)
    return fit["coefficients"].T, float(np.mean(fit["n_leapfrog__"])), _count_seconds() - start


def _count_seconds() -> float:
    """The processor time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def _run_without_limit(command: Any, **options: Any) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(command, check=False, **options | {"timeout": None})


def main(engine: str, folder: str) -> None:
    """Prints the comparison."""
    warnings.simplefilter("ignore")
    core = load(Path(folder))
    draws, steps, seconds = {"numpyro": sample_numpyro, "pymc": sample_pymc, "stan": sample_stan}[engine](core)
    expected = core.laplace()
    record = {
        "parameters": len(expected.names),
        "mean": float(np.abs((draws.mean(axis=0) - expected.mean) / expected.sd).max()),
        "width": float(np.abs(draws.std(axis=0) / expected.sd - 1.0).max()),
        "steps": steps,
        "seconds": seconds,
        "noise": float(core.belief is not None and core.belief.noise is not None),
        "grade": core.release.reliability.grade if core.release.reliability else "",
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main(*sys.argv[1:])
