"""Anonymity of networks: people whose networks have the same shape (thesis, Def. 10 to 13).

Two networks have the same shape if they are isomorphic without weights and names of places. Colour refinement
(Weisfeiler and Leman, 1968) separates most shapes; an exact search decides the rest.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from corevault.errors import InvalidArgument
from corevault.risk.networks import Adjacency

Palette = dict[object, int]


@dataclass(frozen=True, slots=True)
class _Graph:
    """The neighbours of each node: where edges lead to, and come from."""

    to: tuple[tuple[int, ...], ...]
    back: tuple[tuple[int, ...], ...]


def group_by_shape(graphs: Sequence[Adjacency]) -> list[int]:
    """Group graphs ``(n, n)`` by isomorphism; the result is the number of each graph's class.

    Classes are numbered in the order of their first graph. The sizes of graphs may differ.

    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    >>> group_by_shape([path, path[[1, 0, 2]][:, [1, 0, 2]], ~path])
    [0, 0, 1]
    """
    palette: Palette = {}
    found: dict[tuple[int, ...], list[tuple[int, _Graph, list[int]]]] = defaultdict(list)
    classes: list[int] = []
    number = 0
    for matrix in graphs:
        graph = _read_graph(matrix)
        colours = _refine(graph, [0] * len(graph.to), palette)
        alike = found[tuple(sorted(colours))]
        for known, other, of_other in alike:
            if _are_isomorphic(graph, colours, other, of_other, palette):
                classes.append(known)
                break
        else:
            alike.append((number, graph, colours))
            classes.append(number)
            number += 1
    return classes


def count_graphs(nodes: int, *, directed: bool) -> int:
    """Count the shapes of graphs with ``nodes`` nodes and no loops, by Burnside's lemma.

    >>> count_graphs(4, directed=False), count_graphs(4, directed=True)
    (11, 218)

    Raises:
        InvalidArgument: there are fewer than 0 or more than 30 nodes.
    """
    if not 0 <= nodes <= 30:
        raise InvalidArgument("Shapes can be counted for 0 to 30 nodes.")
    total = 0
    for cycles in _list_partitions(nodes, nodes):
        between = sum(math.gcd(a, b) for place, a in enumerate(cycles) for b in cycles[:place])
        orbits = 2 * between + sum(cycles) - len(cycles) if directed else between + sum(a // 2 for a in cycles)
        repeats = math.prod(math.factorial(cycles.count(each)) for each in set(cycles))
        total += 2**orbits * (math.factorial(nodes) // (math.prod(cycles) * repeats))
    return total // math.factorial(nodes)


def _list_partitions(rest: int, most: int) -> Iterator[tuple[int, ...]]:
    """Yield the partitions of ``rest`` into numbers up to ``most``."""
    if rest == 0:
        yield ()
    for first in range(min(rest, most), 0, -1):
        for others in _list_partitions(rest - first, first):
            yield (first, *others)


def _read_graph(matrix: Adjacency) -> _Graph:
    def list_neighbours(edges: Adjacency) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(int(node) for node in np.flatnonzero(row)) for row in edges)

    return _Graph(list_neighbours(matrix), list_neighbours(matrix.T))


def _refine(graph: _Graph, colours: list[int], palette: Palette) -> list[int]:
    """Refine colours until no class is divided.

    Nodes of one colour then have neighbours of equal colours. The ``palette`` has the same names for all graphs.
    """
    while True:
        signatures = [
            (colour, tuple(sorted(colours[w] for w in to)), tuple(sorted(colours[w] for w in back)))
            for colour, to, back in zip(colours, graph.to, graph.back, strict=True)
        ]
        finer = [palette.setdefault(signature, len(palette) + 1) for signature in signatures]
        if len(set(finer)) == len(set(colours)):
            return finer
        colours = finer


def _are_isomorphic(one: _Graph, colours: list[int], other: _Graph, of_other: list[int], palette: Palette) -> bool:
    """Search for an isomorphism that keeps colours.

    One node of a class with several nodes gets a new colour. Its image may be any node of that class in the other
    graph. Refinement follows. Discrete colours give the only candidate, which is checked.
    """
    if sorted(colours) != sorted(of_other):
        return False
    counts = {colour: colours.count(colour) for colour in colours}
    colour, count = min(counts.items(), key=lambda each: (each[1] == 1, each[1]), default=(0, 1))
    if count == 1:
        image = {colour: node for node, colour in enumerate(of_other)}
        to = [image[colour] for colour in colours]
        return all({to[w] for w in one.to[v]} == set(other.to[to[v]]) for v in range(len(to)))
    marked = _refine(one, _mark(colours, colours.index(colour), palette), palette)
    return any(
        _are_isomorphic(one, marked, other, _refine(other, _mark(of_other, node, palette), palette), palette)
        for node in range(len(of_other))
        if of_other[node] == colour
    )


def _mark(colours: list[int], node: int, palette: Palette) -> list[int]:
    """Give one node a colour that no other has."""
    own = palette.setdefault(("own", colours[node]), len(palette) + 1)
    return [*colours[:node], own, *colours[node + 1 :]]
