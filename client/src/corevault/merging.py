"""Several releases of one model, as one set of points."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, qr
from scipy.optimize import nnls
from scipy.special import ndtri

from corevault._agreement import MERGED, find_datasets, find_releases, list_releases
from corevault._arguments import require_whole_number
from corevault.belief import Belief, Block
from corevault.combination import bound_dependence
from corevault.errors import InvalidArgument, UnexpectedReply
from corevault.exports.density import NUMPY, make_row_densities
from corevault.gaussian import Gaussian
from corevault.pseudocoreset import Pseudocoreset
from corevault.replies.release import Reason, Reliability
from corevault.weighted_model import weigh_model

Array = NDArray[np.float64]

_GRADES: Final = ("not-usable", "centre-only", "calibrated")
_MOST_FIT: Final = 1.0
"""The largest divergence in nats of a calibrated release's points, as on the server."""
_MOST_SHIFT: Final = 0.5
_LEAST_DRAWS, _MOST_DRAWS = 512, 4096
_ALIGNED: Final = 1e-9
_DIFFERS: Final = Reason(
    code="points-differ",
    words="The posterior of the merged points differs from that of all points. Merge with a larger size.",
)


def merge(releases: Iterable[Pseudocoreset], size: int, *, independent: bool = False) -> Pseudocoreset:
    """At most ``size`` points for the posterior of several releases, about different people.

    The points of a release represent the likelihood of its table. So all points together represent all tables, and the
    prior counts once. If there are more than ``size``, some of them are chosen and weighted again. Their weights are a
    non-negative least squares fit of log-likelihoods, at draws from the joint posterior. This is post-processing of
    released points, so it costs no privacy.

    The result works like a download: ``posterior``, ``predict``, ``stan`` and the other methods. It can be merged
    again, so a stream of releases has a posterior of bounded size.

    - **Noise.** Its belief states the noise of all releases together. It is None if a release states none. The
      statement holds however the errors depend on each other: bounds may cut the rows of all tables in the same
      direction, and such errors do not average out. With ``independent`` the errors are taken as independent, and their
      covariances add up. This states less noise, and too little if the rows do not follow the model.
    - **Grade.** Its grade is the worst of all, with all reasons. ``points-differ`` is added if the chosen points
      differ by more than one nat from all points. ``release.diagnostics`` states this ``fit_kl``, and the merged
      ``releases`` and ``datasets``.
    - **Cost.** ``release.cost`` is None, because only the releases were charged. A person in one table is
      charged in the account of this table only.

    ``combine`` gives a normal posterior instead, in which a noisy release has less weight.

    >>> from dataclasses import replace
    >>> from corevault import example, merge
    >>> first = example()
    >>> second = replace(first, release=replace(first.release, id="rel_other", dataset_id="ds_other"))
    >>> merge([first, second], size=15)
    <Pseudocoreset merged: 15 points of logistic-regression, calibrated, 4 design columns>

    Raises ``InvalidArgument`` for fewer than two releases, and for other models, designs or priors. Two releases of one
    dataset are refused too, because they are about the same people.
    """
    cores = _check(releases)
    require_whole_number(size, "size", lower=1)
    union = _unite(cores)
    exact = union.laplace(noise=False)
    chosen = union if len(union.u) <= size else _compress(union, exact, size)
    found = chosen.laplace(noise=False)
    divergence = found.kl(exact)
    merged = replace(
        cores[0].release,
        id="merged",
        dataset_id="merged",
        method=MERGED,
        size=len(chosen.u),
        reliability=_judge(cores, _find_fault(found, exact, divergence)),
        diagnostics=_describe(cores, divergence, chosen.weight),
        posterior=None,
        cost=None,
        created_at=None,
        raw={},
    )
    return replace(chosen, release=merged, belief=_add_noises(cores, exact, independent=independent))


def _check(releases: object) -> list[Pseudocoreset]:
    cores = list_releases(releases, "merge")
    datasets = [dataset for core in cores for dataset in find_datasets(core)]
    if len(set(datasets)) < len(datasets):
        raise InvalidArgument(
            "Two releases are of the same dataset, so they are about the same people, who would count twice. Average "
            "releases of one dataset with corevault.combine(…, same_people=True)."
        )
    return cores


def _unite(cores: Sequence[Pseudocoreset]) -> Pseudocoreset:
    """All points with a positive weight; at least one."""
    u, weight = np.concatenate([core.u for core in cores]), np.concatenate([core.weight for core in cores])
    targets = [core.y for core in cores if core.y is not None]
    y = np.concatenate(targets) if targets else None
    counts = weight > 0
    counts[0] |= not counts.any()
    return Pseudocoreset(cores[0].release, u[counts], None if y is None else y[counts], weight[counts])


def _compress(union: Pseudocoreset, exact: Gaussian, size: int) -> Pseudocoreset:
    """The ``size`` points whose weighted log-likelihood is closest to that of all points."""
    targets = np.zeros(len(union.u)) if union.y is None else union.y
    densities = make_row_densities(weigh_model(union.release, union.u, targets, union.weight), NUMPY)
    values = np.array([densities(theta) for theta in _draw(exact)])
    vectors = (values - values.mean(axis=0)) * union.weight
    shares = _fit(vectors, size)
    kept = shares > 0
    weight = union.weight[kept] * shares[kept]
    return replace(union, u=union.u[kept], y=None if union.y is None else union.y[kept], weight=weight)


def _draw(fit: Gaussian) -> Array:
    """Points ``(S, D)`` that fill the distribution evenly (Sobol 1967); always the same for the same ``fit``."""
    from scipy.stats.qmc import Sobol  # noqa: PLC0415 - it takes half a second

    d = len(fit.mean)
    wanted = min(max(d * (d + 3), _LEAST_DRAWS), _MOST_DRAWS)
    cube = Sobol(d, scramble=False).random_base2(int(np.ceil(np.log2(wanted))))
    normal: Array = ndtri(cube + 0.5 / len(cube))
    draws: Array = fit.mean + normal @ cholesky(fit.covariance, lower=True).T
    return draws


def _fit(vectors: Array, size: int) -> Array:
    """Non-negative orthogonal matching pursuit for the sum of the columns of ``vectors`` ``(S, n)``.

    At most ``size`` of the shares ``(n,)`` are positive. Each step adds the column most aligned with the residual.
    """
    columns: Array = qr(vectors, mode="r")[0][: vectors.shape[1]]
    total, lengths = columns.sum(axis=1), np.linalg.norm(columns, axis=0)
    shares, chosen = np.zeros(len(lengths)), list[int]()
    for _ in range(size):
        residual = total - columns @ shares
        aligned = (residual @ columns) / np.maximum(lengths, np.finfo(np.float64).tiny)
        aligned[chosen] = -np.inf
        best = int(np.argmax(aligned))
        if aligned[best] <= _ALIGNED * float(np.linalg.norm(total)):
            break
        chosen.append(best)
        shares[chosen] = nnls(columns[:, chosen], total)[0]
    return shares


def _add_noises(cores: Sequence[Pseudocoreset], exact: Gaussian, *, independent: bool) -> Belief | None:
    """The noise of the joint mean, if every release states noise.

    A posterior with the precision ``P`` and an error ``e`` in its mean has the error ``P e`` in its natural parameter.
    These add up, so the joint mean has the error ``V sum P e`` with the joint covariance ``V``.
    """
    moments = list[Array]()
    for core in cores:
        noise = None if core.belief is None else core.belief.noise
        if noise is None:
            return None
        if noise.names != exact.names:
            raise UnexpectedReply("The noise of a release has other parameters than its model.")
        root = cho_factor(core.laplace(noise=False).covariance, lower=True)
        moments.append(cho_solve(root, cho_solve(root, noise.covariance).T))
    factors = np.ones(len(moments)) if independent else bound_dependence(exact.covariance, moments)
    total = np.tensordot(factors, np.array(moments), axes=1)
    covariance = exact.covariance @ total @ exact.covariance
    arrays: dict[str, NDArray[Any]] = {"names": np.array(exact.names), "mean": np.zeros(len(exact.mean))}
    return Belief((Block("noise", "normal", arrays | {"covariance": 0.5 * (covariance + covariance.T)}),))


def _find_fault(found: Gaussian, exact: Gaussian, divergence: float) -> str:
    """The best grade that the fit of the chosen points allows."""
    if divergence <= _MOST_FIT:
        return "calibrated"
    root = cho_factor(exact.covariance, lower=True)
    difference = found.mean - exact.mean
    shift = 0.5 * float(difference @ cho_solve(root, difference))
    learned = 0.5 * float(exact.mean @ cho_solve(root, exact.mean))
    return "centre-only" if shift <= _MOST_SHIFT * max(learned, 1.0) else "not-usable"


def _judge(cores: Sequence[Pseudocoreset], fit: str) -> Reliability | None:
    """The worst grade, with every reason once; None if a release states no grade."""
    stated = [core.release.reliability for core in cores]
    known = [each for each in stated if each is not None]
    if len(known) < len(stated):
        return None
    reasons = {reason.code: reason for each in known for reason in each.reasons}
    if fit != "calibrated":
        reasons |= {_DIFFERS.code: _DIFFERS}
    worst = min([*(each.grade for each in known), fit], key=_rank)
    return Reliability(grade=worst, reasons=tuple(reasons.values()))


def _rank(grade: str) -> int:
    """The place of a grade, from the worst; a grade of a later version counts as the worst."""
    return _GRADES.index(grade) if grade in _GRADES else -1


def _describe(cores: Sequence[Pseudocoreset], divergence: float, weight: Array) -> dict[str, Any]:
    trusted = [core.release.trusted for core in cores]
    stated = {} if None in trusted else {"trusted": all(trusted) and divergence <= _MOST_FIT}
    return stated | {
        "fit_kl": float(f"{max(divergence, 0.0):.4g}"),
        "total_weight": float(f"{weight.sum():.4g}"),
        "releases": [release for core in cores for release in find_releases(core)],
        "datasets": [dataset for core in cores for dataset in find_datasets(core)],
    }
