"""The posterior of a released model, given its points or rows of the caller."""

import numpy as np
from numpy.typing import NDArray

from corevault._arguments import describe
from corevault.errors import InvalidArgument, WrongType
from corevault.gaussian import Gaussian
from corevault.laplace import as_floats, check, newton
from corevault.prediction import outcome_of
from corevault.replies.release import Release, ReleasedModel
from corevault.weighted_model import weigh_model

Array = NDArray[np.float64]


def posterior(release: Release, x: Array, y: Array | None = None, weight: Array | None = None) -> Gaussian:
    """The Laplace approximation of the posterior of the release's model, under its prior.

    ``x`` ``(n, p)`` are rows in the design's coordinates. ``y`` ``(n,)`` are targets in the form of the points: 0 and
    1, the index of a class in declared order, or the target's units. It is None for a model without a target.
    ``weight`` ``(n,)`` is non-negative, by default 1. For ``gaussian-mean`` under a normal prior the result is exact.
    The rows are taken as they are, so the result leaves out the noise of the release. ``core.laplace()`` adds it.

    Parameters have the names of the design's columns. For ``multinomial-logistic`` each class but the first has its
    parameters, with ``class:`` before the name. For ``linear-regression`` and ``student-t-regression`` of unknown noise
    the last parameter is ``log_noise_scale``, the logarithm of four times the noise over the target's half range.

    Raises ``InvalidArgument`` for a family that this version does not support, and for arrays that do not fit.

    >>> core = example()
    >>> posterior(core.release, core.u, core.y, core.weight).names
    ('age', 'smoker', 'sex=male', 'intercept')
    """
    if not isinstance(release, Release):
        raise WrongType(f"release must be a Release, such as core.release; {describe(release)}.")
    model, columns = release.model, [column.name for column in release.design]
    x = as_floats(x, "x")
    if x.ndim != 2 or x.shape[1] != len(columns):
        raise InvalidArgument("x must be (n, p) with the release's design columns; see core.design_matrix.")
    weights = np.ones(len(x)) if weight is None else as_floats(weight, "weight")
    if y is None and model.family != "gaussian-mean":
        raise InvalidArgument(f"y must be given: {model.family} has a target.")
    if y is not None and model.family == "gaussian-mean":
        raise InvalidArgument("y must be None: gaussian-mean has no target.")
    targets = np.zeros(len(x)) if y is None else as_floats(y, "y")
    check(x, targets, weights)
    _check_targets(model, targets)
    weighted = weigh_model(release, x, targets, weights)
    return newton(weighted.likelihood(), weighted.prior, weighted.names).with_outcome(outcome_of(release))


def _check_targets(model: ReleasedModel, y: Array) -> None:
    """Raises ``InvalidArgument`` for targets that are impossible under the family."""
    if model.family in {"logistic-regression", "probit-regression"} and not np.isin(y, (0.0, 1.0)).all():
        raise InvalidArgument("y must be 0 or 1.")
    if model.family in {"poisson-regression", "negative-binomial-regression"} and (y < 0).any():
        raise InvalidArgument("y must hold counts, which are not negative.")
    if model.family == "multinomial-logistic":
        classes = len((model.target_transform or {}).get("categories", ()))
        if not np.isin(y, np.arange(classes)).all():
            raise InvalidArgument("y must hold the index of each row's class, in declared order.")
