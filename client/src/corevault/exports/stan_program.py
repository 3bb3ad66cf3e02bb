"""Stan programs of weighted models, with their data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from corevault.errors import InvalidArgument
from corevault.exports.whitening import Whitening
from corevault.likelihoods import REFERENCE_NOISE
from corevault.weighted_model import WeightedModel


@dataclass(frozen=True)
class StanProgram:
    """A Stan program and its data; both are for any of Stan's interfaces.

    ``coefficients`` in the output are the parameters with the noise of the release, in the order of ``names``.

    >>> sorted(example().stan().data)[:3]
    ['D', 'M', 'P']
    """

    code: str
    data: dict[str, Any]
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"StanProgram({len(self.code.splitlines())} lines, {len(self.names)} parameters; see .code and .data)"


def write_stan(model: WeightedModel, whitening: Whitening) -> StanProgram:
    """The program of a model. Raises ``InvalidArgument`` for a family without one."""
    if model.family not in _LIKELIHOODS:
        raise InvalidArgument(f"This version has no program for {model.family!r}; upgrade corevault.")
    extra = _extra_data(model)
    declared = [_DECLARATIONS[name] for name in extra]
    blocks = {
        "data": [*_DATA, *declared],
        "parameters": ["vector[D] z;"],
        "transformed parameters": ["vector[D] theta = centre + root * z;"],
        "model": [*_prior_lines(model), *_likelihood_lines(model), *_scale_lines(model)],
        "generated quantities": [*_NOISE],
    }
    code = f"// {model.family} of weighted pseudopoints, with its prior\n" + "\n".join(_write_blocks(blocks)) + "\n"
    return StanProgram(code, _data(model, whitening) | extra, model.names)


def _write_blocks(blocks: dict[str, list[str]]) -> Iterator[str]:
    for name, lines in blocks.items():
        yield f"{name} {{"
        yield from (f"  {line}" for line in lines)
        yield "}"


_DATA: Final = (
    "int<lower=0> M;  // pseudopoints",
    "int<lower=1> P;  // design columns",
    "int<lower=1> D;  // parameters",
    "int<lower=0> R;  // rank of the noise",
    "matrix[M, P] x;",
    "vector[M] y;",
    "vector<lower=0>[M] weight;",
    "vector[D] prior_mean;",
    "vector<lower=0>[D] prior_scale;",
    "vector[D] centre;  // theta = centre + root * z: coordinates in which sampling is fast",
    "matrix[D, D] root;",
    "matrix[D, R] noise_root;  // root of the covariance of the release's noise",
)
_DECLARATIONS: Final = {
    "noise_scale": "real<lower=0> noise_scale;",
    "white": "matrix[D, D] white;  // whitens the noise",
    "reference_noise": "real<lower=0> reference_noise;",
    "noise_degrees_of_freedom": "real<lower=0> noise_degrees_of_freedom;",
    "dispersion": "real<lower=0> dispersion;",
    "K": "int<lower=2> K;  // classes",
    "is_class": "matrix[M, K - 1] is_class;  // 1 for the point's class; the first class has no column",
    "prior_degrees_of_freedom": "real<lower=0> prior_degrees_of_freedom;",
    "S": "int<lower=1> S;  // parameters with one common unknown prior scale",
}
_NOISE: Final = (
    "// theta is the posterior given the points; coefficients include the release's noise.",
    "vector[D] coefficients = theta;",
    "for (r in 1:R) {",
    "  coefficients += noise_root[, r] * normal_rng(0, 1);",
    "}",
)
_ETA: Final = "vector[M] eta = x * head(theta, P);"
_LIKELIHOODS: Final = {
    "logistic-regression": [_ETA, "target += dot_product(weight, y .* eta - log1p_exp(eta));"],
    "probit-regression": [
        _ETA,
        "for (m in 1:M) {",
        "  target += weight[m] * std_normal_lcdf((2 * y[m] - 1) * eta[m] | );",
        "}",
    ],
    "poisson-regression": [_ETA, "target += dot_product(weight, y .* eta - exp(eta));"],
    "negative-binomial-regression": [
        _ETA,
        "target += dot_product(weight, y .* eta - (y + 1 / dispersion) .* log1p(dispersion * exp(eta)));",
    ],
    "linear-regression": [],
    "student-t-regression": [],
    "multinomial-logistic": [
        "matrix[M, K - 1] eta = x * to_matrix(theta, P, K - 1);",
        "for (m in 1:M) {",
        "  target += weight[m] * (dot_product(is_class[m], eta[m]) - log_sum_exp(append_col(0, eta[m])));",
        "}",
    ],
    "gaussian-mean": [
        "for (m in 1:M) {",
        "  target += -0.5 * weight[m] * dot_self((to_vector(x[m]) - theta) / noise_scale);",
        "}",
    ],
}


def _likelihood_lines(model: WeightedModel) -> list[str]:
    if model.white is None:
        return _LIKELIHOODS[model.family]
    return [
        line.replace("(to_vector(x[m]) - theta) / noise_scale", "white * (to_vector(x[m]) - theta)")
        for line in _LIKELIHOODS[model.family]
    ]


def _prior_lines(model: WeightedModel) -> list[str]:
    if model.prior.degrees_of_freedom is None:
        return ["target += -0.5 * dot_self((theta - prior_mean) ./ prior_scale);"]
    lines = [
        "vector[D] ratio = (theta - prior_mean) ./ prior_scale;",
        "target += -0.5 * (prior_degrees_of_freedom + S) * log1p(dot_self(head(ratio, S)) / prior_degrees_of_freedom);",
    ]
    rest = ["target += -0.5 * dot_self(tail(ratio, D - S));"]
    return lines + (rest if model.prior.shared < len(model.names) else [])


def _scale_lines(model: WeightedModel) -> list[str]:
    """The likelihood of linear and Student-t regression, with known or unknown noise."""
    if model.family not in ("linear-regression", "student-t-regression"):
        return []
    unknown = model.has_unknown_noise
    scale = "reference_noise * exp(theta[D])" if unknown else "noise_scale"
    if model.noise_degrees_of_freedom is None:
        value = "-0.5 * error .* error"
    else:
        value = "-0.5 * (noise_degrees_of_freedom + 1) * log1p(error .* error / noise_degrees_of_freedom)"
    return [
        f"vector[M] error = (y - x * head(theta, P)) / ({scale});",
        f"target += dot_product(weight, {value}{' - theta[D]' if unknown else ''});",
    ]


def _data(model: WeightedModel, whitening: Whitening) -> dict[str, Any]:
    rows, width = model.x.shape
    return {
        "M": rows,
        "P": width,
        "D": len(model.names),
        "R": whitening.noise_root.shape[1],
        "x": model.x.tolist(),
        "y": model.y.tolist(),
        "weight": model.weight.tolist(),
        "prior_mean": np.broadcast_to(model.prior.mean, model.prior.scales.shape).tolist(),
        "prior_scale": model.prior.scales.tolist(),
        "centre": whitening.centre.tolist(),
        "root": whitening.root.tolist(),
        "noise_root": whitening.noise_root.tolist(),
    }


def _extra_data(model: WeightedModel) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    if model.has_unknown_noise:
        extra["reference_noise"] = REFERENCE_NOISE
    elif model.white is not None:
        extra["white"] = model.white.tolist()
    elif model.noise is not None:
        extra["noise_scale"] = model.noise
    if model.noise_degrees_of_freedom is not None:
        extra["noise_degrees_of_freedom"] = model.noise_degrees_of_freedom
    if model.dispersion is not None:
        extra["dispersion"] = model.dispersion
    if model.classes:
        is_class = model.y[:, None] == np.arange(1, model.classes)
        extra |= {"K": model.classes, "is_class": is_class.astype(float).tolist()}
    if model.prior.degrees_of_freedom is not None:
        extra |= {"prior_degrees_of_freedom": model.prior.degrees_of_freedom, "S": model.prior.shared}
    return extra
