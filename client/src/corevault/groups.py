"""Weights of declared groups of rows, which the method ``dp-groups`` releases."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from corevault._arguments import describe, require_whole_number
from corevault._show import make_table
from corevault.belief import read_belief
from corevault.errors import UnexpectedReply, WrongType

Array = NDArray[np.float64]
_SHAPES: Mapping[str, str] = {
    "labels": "Gk",
    "weight": "G",
    "strength": "G",
    "agreement": "G",
    "above_noise": "G",
    "draws": "SD",
    "answers": "GS",
}


class GroupErrors(NamedTuple):
    """Standard deviations of the figures of groups.

    Each is ``(G,)``, and due to the noise of the answers alone.

    >>> groups.errors(np.random.default_rng(1)).weight.shape
    (2,)
    """

    weight: Array
    strength: Array
    agreement: Array


@dataclass(frozen=True, eq=False, repr=False)
class Groups:
    """G groups, one for each combination of declared values of ``columns`` ``(k,)``.

    ``labels`` ``(G, k)`` are the values of each group, and ``weight`` ``(G,)`` its weight. The weighted sum of the
    groups' log-likelihoods is close to the sum over all rows. ``strength`` ``(G,)`` is the root mean square of a
    group's log-likelihood over the draws, in nats and without noise. ``agreement`` ``(G,)`` is its correlation with
    that of the other groups: a negative one contradicts them. ``above_noise`` ``(G,)`` marks groups whose answer is
    longer than noise alone would make it.

    ``answers`` ``(G, S)`` are the noised sums of centred log-likelihoods at ``draws`` ``(S, D)`` of ``parameters``.
    ``noise`` is the standard deviation of each.

    >>> groups.columns, groups.weight.shape
    (('sex',), (2,))
    """

    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    weight: Array
    strength: Array
    agreement: Array
    above_noise: NDArray[np.bool_]
    noise: float
    parameters: tuple[str, ...]
    draws: Array
    answers: Array

    def table(self) -> Any:
        """One row for each group: its values, ``weight``, ``strength``, ``agreement`` and ``above_noise``.

        It is a DataFrame, or a plain ``Table`` if pandas is not installed. A figure with the name of a declared column
        is named as in ``group_weight``.

        >>> groups.table()["sex"].to_list()
        ['female', 'male']
        """
        figures = {
            "weight": self.weight.tolist(),
            "strength": self.strength.tolist(),
            "agreement": self.agreement.tolist(),
            "above_noise": self.above_noise.tolist(),
        }
        names = (*self.columns, *(_find_free(name, self.columns) for name in figures))
        rows = zip(self.labels, *figures.values(), strict=True)
        return make_table([dict(zip(names, (*label, *numbers), strict=True)) for label, *numbers in rows])

    def choose(self, size: int) -> Self:
        """The same groups with weights for at most ``size`` of those above noise. This costs no privacy.

        >>> int(np.count_nonzero(groups.choose(1).weight))
        1
        """
        require_whole_number(size, "size", lower=1)
        vectors, _ = self._factorise()
        total, chosen = vectors.sum(axis=0), list[int]()
        weight = np.zeros(len(vectors))
        lengths = np.maximum(np.linalg.norm(vectors, axis=1), np.finfo(np.float64).tiny)
        for _ in range(min(int(size), len(vectors))):
            alignment = vectors @ (total - weight @ vectors) / lengths
            alignment[chosen] = -np.inf
            alignment[~self.above_noise] = -np.inf
            best = int(np.argmax(alignment))
            if alignment[best] <= 1e-6 * float(np.linalg.norm(total)):
                break
            chosen.append(best)
            weight = np.zeros(len(vectors))
            weight[chosen] = nnls(vectors[chosen].T, total)[0]
        return replace(self, weight=weight)

    def errors(self, rng: np.random.Generator, count: int = 200) -> GroupErrors:
        """Standard deviations of the figures that the noise of the answers causes. This costs no privacy.

        Noise is drawn ``count`` times around the answers without their noise. The error of a weight is that for the
        same choice of groups; it is NaN for groups without a weight. The error of an agreement is NaN for groups that
        are not above the noise. The errors do not include the clipping of rows.

        >>> groups.errors(np.random.default_rng(1)).strength.shape
        (2,)
        """
        if not isinstance(rng, np.random.Generator):
            raise WrongType(f"rng must be a generator, such as numpy.random.default_rng(); {describe(rng)}.")
        require_whole_number(count, "count", lower=2)
        exact, scale = self._factorise()
        freedom, width = self.answers.shape[1] - 1, max(self.answers.shape[1] - 1, len(exact))
        exact = np.pad(exact, ((0, 0), (0, width - exact.shape[1])))
        deviation, chosen = self.noise / scale * np.sqrt(freedom / width), np.flatnonzero(self.weight)
        drawn = list[Array]()
        for _ in range(int(count)):
            noised = exact + deviation * rng.standard_normal(exact.shape)
            products = noised @ noised.T - freedom * (self.noise / scale) ** 2 * np.eye(len(exact))
            weight, vectors = np.full(len(exact), np.nan), _factorise(products)
            if len(chosen):  # SciPy's least squares must not be asked for no unknown
                weight[chosen] = nnls(vectors[chosen].T, vectors.sum(axis=0))[0]
            strength = scale * np.sqrt(np.maximum(products.diagonal(), 0) / self.answers.shape[1])
            drawn.append(np.array([weight, strength, _correlate_with_others(products)]))
        found = GroupErrors(*np.std(drawn, axis=0, ddof=1))
        return found._replace(agreement=np.where(self.above_noise, found.agreement, np.nan))

    def _factorise(self) -> tuple[Array, float]:
        """Vectors ``(G, G)`` with the products of the groups' sums, and their scale.

        The products are without noise, and divided by the squared scale.
        """
        centred = self.answers - self.answers.mean(axis=1, keepdims=True)
        scale = max(float(np.abs(centred).max()), self.noise)
        variance = (centred.shape[1] - 1) * (self.noise / scale) ** 2
        return _factorise((centred / scale) @ (centred / scale).T - variance * np.eye(len(centred))), scale

    def __repr__(self) -> str:
        return f"Groups({len(self.weight)} groups by {', '.join(self.columns)})"


def _factorise(products: Array) -> Array:
    """Vectors ``(G, G)`` with these products, without negative eigenvalues."""
    values, directions = np.linalg.eigh(products)
    return np.asarray(directions * np.sqrt(np.maximum(values, 0)))


def _correlate_with_others(products: Array) -> Array:
    """Each group's correlation with the sum over the others; 0 where noise leaves no length."""
    own, rows = products.diagonal(), products.sum(axis=1)
    others = products.sum() - 2 * rows + own
    lengths = np.sqrt(np.maximum(own, 0) * np.maximum(others, 0))
    return np.asarray(np.clip(np.divide(rows - own, lengths, out=np.zeros(len(own)), where=lengths > 0), -1, 1))


def _find_free(name: str, taken: tuple[str, ...]) -> str:
    """The name, behind as many ``group_`` as make it free."""
    while name in taken:
        name = f"group_{name}"
    return name


def read_groups(content: bytes) -> Groups:
    """Reads the npz representation. Raises ``UnexpectedReply`` if it has no group weights."""
    block = next((each for each in read_belief(content).blocks if each.family == "group-weights"), None)
    try:
        arrays = {} if block is None else dict(block.arrays)
        columns, parameters = (tuple(map(str, arrays[name])) for name in ("values", "parameters"))
        labels = tuple(tuple(map(str, row)) for row in arrays["labels"])
        numbers = {name: np.asarray(arrays[name], dtype=np.float64) for name in _SHAPES if name != "labels"}
        noise = float(arrays["noise"][0])
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise UnexpectedReply("The groups are not an npz archive with weights of groups.") from error
    sizes = {"G": len(labels), "S": len(numbers["draws"]), "D": len(parameters)}
    fits = all(numbers[name].shape == tuple(sizes[letter] for letter in _SHAPES[name]) for name in numbers)
    if not (fits and labels and all(len(label) == len(columns) for label in labels)):
        raise UnexpectedReply("The arrays of the groups do not have matching shapes.")
    above = numbers.pop("above_noise") > 0
    return Groups(columns=columns, labels=labels, noise=noise, parameters=parameters, above_noise=above, **numbers)
