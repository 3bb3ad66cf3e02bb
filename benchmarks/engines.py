"""Posteriors of one release in four engines: ``make engines``.

Releases one generated table under each model family, in this process. Then it makes a separate environment with the
client, NumPyro, PyMC, ArviZ and PyStan, and fits each release with each engine there. The engines get the programs that
the client writes. Their means and widths must agree with the client's Laplace approximation, with the release's noise.
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from app.inference.core.facts import Column, DeclaredFacts
from app.inference.core.plan import ModelSpec, PriorSpec
from app.inference.core.problems import make_problem, name_parameters
from app.inference.core.row_source import PRESENT
from app.releases.http.belief_rendering import render_belief
from app.releases.http.rendering import render
from app.releases.statement import Run, make_release_body
from benchmarks.cases import Case
from benchmarks.environment import PAGES, describe_environment
from benchmarks.runs import Job, make_plan, make_seeded_release

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("numpyro", "pymc", "arviz", "pystan", "setuptools<81")
ENGINES: Final = ("numpyro", "pymc", "stan")
FIELDS: Final = ("model", "engine", "parameters", "mean", "width", "steps", "seconds", "noise", "grade", "failure")
_SHOWN: Final = ("numpyro", "jax", "pymc", "pystan", "httpstan", "arviz")
_LONGEST_FAILURE: Final = 200
FAR, WIDE = 0.15, 0.05
"""Largest difference of means in posterior standard deviations, and of widths as a share."""
_INTRODUCTION: Final = """Written by `make engines`. One generated table of 8,000 rows is released under each model,
with ε = {epsilon}. Each release is fitted with the programs of `core.numpyro_model()`, `core.pymc_model()` and
`core.stan()`, and compared with the Laplace approximation of `core.laplace()`. All include the noise of the release.
*Mean* is the largest difference of means in posterior standard deviations. *Width* is the largest relative difference
of standard deviations. The limits are {far} and {wide}. *Steps* are leapfrog steps of a draw. Each of four chains has
1,000 draws after 500 warm-up steps. Seconds are processor time; Stan's
leave out the compilation of its program."""
_ROWS: Final = 8000
_COLUMNS: Final = (
    Column("age", "integer", 20, 80),
    Column("dose", "real", 0, 10),
    Column("sex", "categorical", categories=("female", "male", "other")),
    Column("ill", "binary"),
    Column("visits", "integer", 0, 60),
    Column("cost", "real", -60, 60),
    Column("ward", "categorical", categories=("a", "b", "c")),
)
_ON: Final = ("age", "dose", "sex")
_T: Final = PriorSpec(degrees_of_freedom=3.0)
_SPECS: Final[Mapping[str, ModelSpec]] = {
    "logistic": ModelSpec("logistic-regression", _ON, "ill"),
    "logistic, t prior": ModelSpec("logistic-regression", _ON, "ill", _T),
    "probit": ModelSpec("probit-regression", _ON, "ill"),
    "linear, known noise": ModelSpec("linear-regression", _ON, "cost", noise_scale=10.0),
    "linear, unknown noise": ModelSpec("linear-regression", _ON, "cost", _T),
    "Student-t, unknown noise": ModelSpec("student-t-regression", _ON, "cost", degrees_of_freedom=5.0),
    "Poisson": ModelSpec("poisson-regression", _ON, "visits"),
    "negative binomial": ModelSpec("negative-binomial-regression", _ON, "visits", dispersion=0.5),
    "multinomial": ModelSpec("multinomial-logistic", _ON, "ward"),
    "Gaussian mean": ModelSpec("gaussian-mean", ("age", "dose"), None, noise_scale=0.5),
}


@dataclass
class NamedRows:
    """A table in memory by column name, all slots present."""

    table: Mapping[str, NDArray[Any]]
    slots: int
    rows_per_slot: int = 1

    def gather(self, indices: NDArray[np.int64]) -> Mapping[str, NDArray[Any]]:
        """The rows at ``indices``."""
        rows = {name: values[indices] for name, values in self.table.items()}
        return rows | {PRESENT: np.ones(len(indices), dtype=np.uint8)}


def draw_table(seed: int) -> dict[str, NDArray[Any]]:
    """A table of ``_ROWS`` rows, on which each model fits."""
    rng = np.random.default_rng(seed)
    age, dose = rng.integers(20, 81, _ROWS), rng.uniform(0, 10, _ROWS)
    sex, ward_scores = rng.integers(0, 3, _ROWS), rng.gumbel(size=(_ROWS, 3))
    eta = 0.5 * (age - 50) / 30 - 0.8 * (dose - 5) / 5 + 0.4 * (sex == 1)
    ward = np.argmax(np.log(softmax(np.outer(eta, [0.0, 0.7, -0.5]), axis=1)) + ward_scores, axis=1)
    return {
        "age": age.astype(float),
        "dose": dose,
        "sex": sex,
        "ill": (rng.random(_ROWS) < expit(eta)).astype(float),
        "visits": np.minimum(rng.poisson(np.exp(1.0 + 0.6 * eta) * rng.gamma(2.0, 0.5, _ROWS)), 60).astype(float),
        "cost": np.clip(8.0 * eta + 8.0 * rng.standard_t(5.0, _ROWS), -60, 60),
        "ward": ward,
    }


def write_release(name: str, folder: Path, seed: int, epsilon: float) -> None:
    """Writes the release of one model as the service stores it: metadata, points and belief."""
    facts = DeclaredFacts(_COLUMNS, _ROWS, {"kind": "row"}, "private", 1e-6)
    spec = _SPECS[name]
    case = Case(name, facts, spec, NamedRows(draw_table(seed), _ROWS))
    job = Job(case, "dp-psvi-surrogate", 50, seed, epsilon=epsilon)
    points = make_seeded_release(job)
    run = Run("job_1", "ds_1", 1, facts, make_plan(job), {"epsilon": epsilon, "delta": 1e-6})
    body = make_release_body(run, points) | {"id": "rel_1", "dataset_id": "ds_1"}
    blocks = points.make_blocks(name_parameters(make_problem(spec, facts)))
    discrete = any(column.name == spec.target and column.is_discrete for column in _COLUMNS)
    folder.mkdir(parents=True)
    (folder / "release.json").write_text(json.dumps(body))
    (folder / "points.npz").write_bytes(render(points, discrete_target=discrete)["npz"])
    for form, content in render_belief(blocks).items():
        (folder / f"belief.{form}").write_bytes(content)


def make_environment(folder: Path) -> Path:
    """The Python of an environment with the client and the engines; it is made if it does not exist."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", *PACKAGES, str(ROOT / "client")], check=True)
    return python


def fit(python: Path, engine: str, folder: Path) -> dict[str, Any]:
    """The record of one release and engine.

    It has a ``failure`` if the engine ended with an error. Programs that Stan has compiled stay in the
    environment's folder.
    """
    environment = os.environ | {"XDG_CACHE_HOME": str(python.parent.parent / "cache")}
    command = [str(python), str(ROOT / "benchmarks" / "engine_fits.py"), engine, str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    lines = (done.stderr if done.returncode else done.stdout).splitlines() or ["no message"]
    if done.returncode:
        return {"failure": lines[-1][:_LONGEST_FAILURE]}
    record: dict[str, Any] = json.loads(lines[-1])
    return record


def find_shortfalls(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """One sentence for each fit that failed or is beyond a limit."""
    shortfalls = []
    for each in records:
        subject = f"{each['model']} in {each['engine']}"
        if each.get("failure"):
            shortfalls.append(f"{subject} failed: {each['failure']}.")
        elif float(each["mean"]) > FAR or float(each["width"]) > WIDE:
            shortfalls.append(f"{subject}: mean {float(each['mean']):.3f}, width {float(each['width']):.1%}.")
    return shortfalls


def render_page(records: Sequence[Mapping[str, Any]], epsilon: float, versions: Mapping[str, str]) -> str:
    """The page: one line for each fit, and the fits beyond the limits."""
    measured = describe_environment() | dict(versions)
    lines = [
        "# One release in four engines",
        "",
        _INTRODUCTION.format(epsilon=f"{epsilon:g}", far=FAR, wide=f"{WIDE:.0%}"),
        "",
        f"Measured on: {'; '.join(f'{name} {value}' for name, value in measured.items())}.",
        "",
        "## Beyond the limits",
        *([f"- {each}" for each in find_shortfalls(records)] or ["No fit failed, and no fit is beyond a limit."]),
        "",
        "## All fits",
        "| model | engine | grade | parameters | mean | width | steps | seconds |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    lines += [_render_line(each) for each in records]
    return "\n".join(lines) + "\n"


def _render_line(record: Mapping[str, Any]) -> str:
    if record.get("failure"):
        return f"| {record['model']} | {record['engine']} | | | failed | | | |"
    figures = f"{float(record['mean']):.3f} | {float(record['width']):.1%} | {float(record['steps']):.1f}"
    return (
        f"| {record['model']} | {record['engine']} | {record['grade']} | {record['parameters']} | {figures} | "
        f"{float(record['seconds']):.1f} |"
    )


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of an earlier run without its failures; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [record for record in csv.DictReader(file) if not record.get("failure")]


def write_records(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Writes all records, in the order of the models and engines."""
    places = {(name, engine): place for place, (name, engine) in enumerate(product(_SPECS, ENGINES))}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(sorted(records, key=lambda record: places[record["model"], record["engine"]]))


def _read_versions(python: Path) -> dict[str, str]:
    code = f"import importlib.metadata as m, json; print(json.dumps({{name: m.version(name) for name in {_SHOWN!r}}}))"
    versions: dict[str, str] = json.loads(
        subprocess.run([str(python), "-c", code], check=True, capture_output=True).stdout
    )
    return versions


def measure(python: Path, root: Path, options: argparse.Namespace) -> None:
    """Fits each release with each engine, and writes the records after each fit."""
    records = read_records(options.out) if options.resume else []
    for place, name in enumerate(_SPECS):
        known = {record["engine"] for record in records if record["model"] == name}
        folder = root / f"release{place}"
        if known < set(ENGINES):
            write_release(name, folder, options.seed, options.epsilon)
        for engine in (each for each in ENGINES if each not in known):
            records.append({"model": name, "engine": engine} | fit(python, engine, folder))
            write_records(options.out, records)
            print(records[-1], flush=True)


def main() -> int:
    """Makes the releases, fits them, and writes the page; returns 1 if an engine disagrees or fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=Path, help="a folder for the environment, which is kept")
    parser.add_argument("--out", type=Path, default=PAGES / "engines.csv")
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--resume", action="store_true", help="keep the records of an earlier run that did not end")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        python = make_environment(options.environment or root / "environment")
        measure(python, root, options)
        versions = _read_versions(python)
    with options.out.open(newline="") as file:
        records = list(csv.DictReader(file))
    options.out.with_suffix(".md").write_text(render_page(records, options.epsilon, versions))
    return int(bool(find_shortfalls(records)))


if __name__ == "__main__":
    sys.exit(main())
