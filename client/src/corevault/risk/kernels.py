"""Similarity of networks by graph kernels (thesis, section 3.3.3).

A kernel counts small features of two networks, and compares the counts. Places have no names in it, only ranks.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import sparse

from corevault.errors import InvalidArgument
from corevault.risk.networks import Network

Similarities = npt.NDArray[np.float64]
_LIGHT: Final = 0.4
"""Share of the lightest edges that are left out."""
_OFTEN, _SELDOM = 0.2, 0.8
"""Shares of the places, by visits, that end the labels 3 and 2."""
_ROUNDS: Final = 2
"""Rounds of refinement of a Weisfeiler-Lehman kernel."""
_BINS: Final = 1000
"""Bins of a histogram of degrees."""
_WIDTH: Final = 0.1
"""Width of the Gaussian kernel between cumulative shares of degrees."""


def compare_networks(
    one: Sequence[Network], other: Sequence[Network], *, kernel: str = "shortest-paths"
) -> Similarities:
    """Compare each network of ``one`` with each of ``other``.

    The similarities are from 0 to 1, ``(len(one), len(other))``. Kernels are ``shortest-paths``, ``subtrees``
    (Weisfeiler-Lehman), ``degrees``, ``weighted-degrees``, and the deep forms ``deep-shortest-paths`` and
    ``deep-subtrees``. Deep forms also count features as similar that often occur in the same networks of ``other``
    (Yanardag & Vishwanathan, *KDD* 2015).

    >>> from corevault.risk import make_network
    >>> networks = [make_network(np.array(trace), 3) for trace in ([0, 1, 2, 0, 1], [0, 1, 0, 1, 2])]
    >>> compare_networks(networks, networks).diagonal()
    array([1., 1.])

    Raises:
        InvalidArgument: there is no such kernel.
    """
    if kernel not in KERNELS:
        raise InvalidArgument(f"There is no kernel {kernel!r}; choose one of {', '.join(KERNELS)}.")
    if kernel.endswith("degrees"):
        return _compare_degrees(one, other, weighted=kernel.startswith("weighted"))
    list_features = _FEATURES[kernel.removeprefix("deep-")]
    counts = _count([list_features(_prune(each)) for each in (*one, *other)])
    mine, theirs = counts[: len(one)], counts[len(one) :]
    if kernel.startswith("deep"):
        vectors = _embed(theirs)
        mine, theirs = mine @ vectors, theirs @ vectors
    return np.asarray((_scale(mine) @ _scale(theirs).T).todense()).clip(0.0, 1.0)


def _prune(network: Network) -> Network:
    """Leave out the lightest edges, and keep the largest component."""
    weights = network.weights.copy()
    edges = np.argwhere(weights > 0)
    order = np.argsort(weights[tuple(edges.T)], kind="stable")
    weights[tuple(edges[order[: int(_LIGHT * len(edges))]].T)] = 0.0
    if not len(network):
        return network
    _, parts = sparse.csgraph.connected_components(sparse.csr_array(weights > 0), connection="weak")
    kept = np.flatnonzero(parts == np.argmax(np.bincount(parts)))
    return Network(network.visits[kept], weights[np.ix_(kept, kept)])


def _label(network: Network) -> list[int]:
    """Label places by their rank in visits: 3 for the first fifth, 1 for the last."""
    share = (np.arange(len(network)) + 1) / max(len(network), 1)
    return [3 if each <= _OFTEN else 2 if each <= _SELDOM else 1 for each in share]


def _list_paths(network: Network) -> Iterator[object]:
    """Yield labels and distance of each ordered pair with a path."""
    labels = _label(network)
    steps = sparse.csgraph.shortest_path(sparse.csr_array(network.weights > 0), unweighted=True)
    for start, end in np.argwhere(np.isfinite(steps) & (steps > 0)):
        yield labels[start], labels[end], int(steps[start, end])


def _list_subtrees(network: Network) -> Iterator[object]:
    """Yield the label of each place, and its refined labels of each round."""
    labels: list[object] = list(_label(network))
    edges = network.weights > 0
    yield from labels
    for _ in range(_ROUNDS):
        labels = [
            (
                label,
                tuple(sorted(str(labels[w]) for w in np.flatnonzero(to))),
                tuple(sorted(str(labels[w]) for w in np.flatnonzero(back))),
            )
            for label, to, back in zip(labels, edges, edges.T, strict=True)
        ]
        yield from labels


_FEATURES: Final[dict[str, Callable[[Network], Iterator[object]]]] = {
    "shortest-paths": _list_paths,
    "subtrees": _list_subtrees,
}
KERNELS: Final = (*_FEATURES, "degrees", "weighted-degrees", *(f"deep-{name}" for name in _FEATURES))
"""The names of the kernels."""


def _count(features: Sequence[Iterator[object]]) -> sparse.csr_array:
    """Count features; the result is ``(networks, features)``."""
    columns: dict[object, int] = {}
    rows, places, counts = list[int](), list[int](), list[float]()
    for row, each in enumerate(features):
        for feature, count in Counter(each).items():
            rows.append(row)
            places.append(columns.setdefault(feature, len(columns)))
            counts.append(float(count))
    return sparse.csr_array((counts, (rows, places)), shape=(len(features), max(len(columns), 1)))


def _scale(vectors: sparse.csr_array) -> sparse.csr_array:
    """Scale rows to length 1; rows of zeros stay."""
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    return sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1.0)) @ vectors)


def _embed(counts: sparse.csr_array) -> sparse.csr_array:
    """Embed features by the positive pointwise mutual information of pairs, ``(features, features)``.

    Two features occur together if a network has both. The diagonal keeps features that occur with no other.
    """
    there = sparse.csr_array(counts > 0, dtype=np.float64)
    both = sparse.coo_array(there.T @ there)
    single = np.asarray(there.sum(axis=0)).ravel()
    information = np.log(both.data * counts.shape[0] / (single[both.row] * single[both.col]))
    positive = sparse.csr_array((np.maximum(information, 0.0), (both.row, both.col)), shape=both.shape)
    return sparse.csr_array(positive + sparse.eye_array(both.shape[0]))


def _compare_degrees(one: Sequence[Network], other: Sequence[Network], *, weighted: bool) -> Similarities:
    """Compare the distributions of degrees by a Gaussian kernel."""
    mine, theirs = (np.array([_spread(each, weighted=weighted) for each in networks]) for networks in (one, other))
    square = (np.vecdot(mine, mine)[:, None] + np.vecdot(theirs, theirs) - 2 * mine @ theirs.T) / _BINS
    return np.asarray(np.exp(-np.maximum(square, 0.0) / (2 * _WIDTH**2)))


def _spread(network: Network, *, weighted: bool) -> npt.NDArray[np.float64]:
    """Compute the cumulative shares of degrees, over the largest possible degree, ``(_BINS,)``."""
    pruned = _prune(network)
    strength = pruned.weights if weighted else (pruned.weights > 0).astype(np.float64)
    degrees = strength.sum(axis=0) + strength.sum(axis=1)
    largest = 1.0 if weighted else 2.0 * max(len(pruned) - 1, 1)
    counts, _ = np.histogram(degrees / largest, bins=_BINS, range=(0.0, 1.0))
    return np.cumsum(counts) / max(len(degrees), 1)
