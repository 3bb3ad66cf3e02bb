"""``corevault.risk``: networks, shapes, kernels, the attack and the report."""

import itertools
import math
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from corevault import InvalidArgument, MissingColumn, WrongType, risk
from corevault.risk.linkage import rank_true_match
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

ROWS: dict[str, list[Any]] = {"who": ["a", "b", "a", "a", "b"], "where": [7, 7, 8, 7, 9], "when": [3, 1, 1, 2, 2]}
NAMES: dict[str, Any] = {"user": "who", "place": "where", "time": "when"}


def list_graphs(nodes: int, *, directed: bool) -> list[Any]:
    """All graphs of some nodes."""
    pairs = list(itertools.permutations(range(nodes), 2) if directed else itertools.combinations(range(nodes), 2))
    graphs = []
    for chosen in itertools.product((False, True), repeat=len(pairs)):
        graph = np.zeros((nodes, nodes), dtype=bool)
        for (start, end), there in zip(pairs, chosen, strict=True):
            graph[start, end] |= there
            graph[end, start] |= there and not directed
        graphs.append(graph)
    return graphs


@pytest.mark.parametrize(
    ("nodes", "directed", "shapes"),
    [(3, False, 4), (4, False, 11), (5, False, 34), (3, True, 16), (4, True, 218)],
)
def test_classes_are_all_shapes_of_small_graphs(nodes: int, *, directed: bool, shapes: int) -> None:
    """The thesis prints 2,128 directed graphs of four nodes; there are 218."""
    assert len(set(risk.group_by_shape(list_graphs(nodes, directed=directed)))) == shapes
    assert risk.count_graphs(nodes, directed=directed) == shapes


def test_counts_of_shapes_are_the_known_ones() -> None:
    """OEIS A000088 and A000273."""
    assert [risk.count_graphs(n, directed=False) for n in range(10)] == [
        1, 1, 2, 4, 11, 34, 156, 1044, 12346, 274668
    ]  # fmt: skip
    assert [risk.count_graphs(n, directed=True) for n in range(8)] == [1, 1, 3, 16, 218, 9608, 1540944, 882033440]
    with pytest.raises(InvalidArgument, match="0 to 30"):
        risk.count_graphs(31, directed=True)


@given(arrays.arrays(bool, st.integers(1, 9).map(lambda n: (n, n))), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_shape_does_not_depend_on_the_order_of_places(graph: Any, random: Any) -> None:
    np.fill_diagonal(graph, val=False)
    order = list(range(len(graph)))
    random.shuffle(order)
    changed = graph.copy()
    if len(graph) > 1:
        changed[0, 1] = not changed[0, 1]  # one edge more or less
    same, moved, other = risk.group_by_shape([graph, graph[order][:, order], changed])
    assert same == moved
    assert (other == same) == (len(graph) == 1)


def join_cycles(*lengths: int) -> Any:
    """Separate cycles, with edges in both directions."""
    graph = np.zeros((sum(lengths), sum(lengths)), dtype=bool)
    start = 0
    for length in lengths:
        for node in range(length):
            graph[start + node, start + (node + 1) % length] = graph[start + (node + 1) % length, start + node] = True
        start += length
    return graph


def test_shapes_that_refinement_confuses_are_told_apart() -> None:
    """Regular graphs of one degree have one colour."""
    prism = join_cycles(3, 3)
    for node in range(3):
        prism[node, node + 3] = prism[node + 3, node] = True
    bipartite = np.kron(np.array([[0, 1], [1, 0]]), np.ones((3, 3))).astype(bool)
    graphs = [join_cycles(6), join_cycles(3, 3), prism, bipartite, join_cycles(20), join_cycles(10, 10)]
    assert risk.group_by_shape(graphs) == list(range(6))


def test_symmetric_graphs_of_twenty_places_need_no_long_search() -> None:
    rng = np.random.default_rng(3)
    full = ~np.eye(20, dtype=bool)
    star = np.zeros((20, 20), dtype=bool)
    star[0, 1:] = True
    graphs = [full, np.zeros((20, 20), dtype=bool), star, join_cycles(5, 5, 5, 5), join_cycles(4, 4, 4, 4, 4)]
    moved = [graph[order][:, order] for graph in graphs for order in [rng.permutation(20)]]
    assert risk.group_by_shape([*graphs, *moved]) == [*range(5), *range(5)]


@pytest.mark.parametrize(
    "table",
    [ROWS, pd.DataFrame(ROWS), pa.table(ROWS), {name: np.array(v) for name, v in ROWS.items()}],
    ids=["mapping", "pandas", "arrow", "arrays"],
)
def test_traces_are_in_order_of_time(table: Any) -> None:
    traces = risk.read_traces(table, **NAMES)
    assert traces.people == ("a", "b")
    assert [[traces.places[place] for place in visits] for visits in traces.visits] == [[8, 7, 7], [7, 9]]


def test_times_may_be_dates_and_texts() -> None:
    start = datetime(2026, 1, 1)  # noqa: DTZ001  (columns of tables have none)
    for times in ([start + timedelta(hours=h) for h in ROWS["when"]], [f"2026-01-0{h}" for h in ROWS["when"]]):
        traces = risk.read_traces(pd.DataFrame(ROWS | {"when": times}), **NAMES)
        assert [len(visits) for visits in traces.visits] == [3, 2]
        assert traces.places[traces.visits[0][0]] == 8


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA, pd.NaT, ""])
def test_rows_with_missing_values_are_counted(missing: Any) -> None:
    rows: dict[str, list[Any]] = {name: [*cells] for name, cells in ROWS.items()}
    rows["where"][0] = missing
    traces = risk.read_traces(rows, **NAMES)
    assert traces.skipped == 1
    assert sum(len(visits) for visits in traces.visits) == 4


@pytest.mark.parametrize(
    ("table", "error", "text"),
    [
        ({"who": ["a"]}, MissingColumn, "no column 'where'"),
        ("file.csv", WrongType, "Pass a pandas DataFrame"),
        (ROWS | {"when": [1, "x", 2, 3, 4]}, InvalidArgument, "cannot be put into order"),
        (ROWS | {"who": [["a"], "b", "a", "a", "b"]}, WrongType, "numbers or texts"),
        (ROWS | {"when": [1]}, InvalidArgument, "different lengths"),
        ({"who": [], "where": [], "when": []}, InvalidArgument, "No row"),
        ({"who": "abc", "where": [1], "when": [1]}, WrongType, "must be a list"),
    ],
)
def test_mistakes_get_a_sentence(table: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        risk.read_traces(table, **NAMES)


def test_networks_count_moves_between_the_most_visited_places() -> None:
    """Other visits are left out first, so a move may lead through them; a place has no move to itself."""
    network = risk.make_network(np.array([1, 2, 3, 1, 1, 2, 3, 1, 4]), 3)
    assert network.visits.tolist() == [4, 2, 2]
    assert (network.weights * 6).round(9).tolist() == [[0, 2, 0], [0, 0, 2], [2, 0, 0]]
    smaller = risk.make_network(np.array([1, 2, 3, 1, 1, 2, 3, 1, 4]), 1)
    assert smaller.weights.tolist() == [[0.0]]
    with pytest.raises(InvalidArgument, match="at least one place"):
        risk.make_network(np.array([1]), 0)


@pytest.mark.parametrize("kernel", risk.KERNELS)
def test_kernels_are_largest_for_equal_networks(kernel: str) -> None:
    rows = risk.simulate(people=12, places=15, visits=80, rng=np.random.default_rng(2))
    traces = risk.read_traces(rows, user="user", place="place", time="time")
    networks = [risk.make_network(visits, 10) for visits in traces.visits]
    similar = risk.compare_networks(networks, networks, kernel=kernel)
    assert similar.shape == (12, 12)
    assert np.allclose(similar.diagonal(), 1.0)
    assert np.allclose(similar, similar.T)
    assert similar.min() >= 0.0
    assert similar.max() <= 1.0 + 1e-12


def test_shortest_paths_are_those_of_the_pruned_network() -> None:
    """Both are the same cycle of three places; they differ in the lightest edge of four."""
    one = risk.make_network(np.array([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 2]), 3)
    other = risk.make_network(np.array([0, 1, 2, 0, 1, 2, 0, 1, 0]), 3)
    assert risk.compare_networks([one], [other])[0, 0] == pytest.approx(1.0)
    heavier = risk.make_network(np.array([0, 1, 2, 0, 1, 2, 0, 1, 0, 1, 0, 1, 0]), 3)
    assert risk.compare_networks([one], [heavier])[0, 0] < 0.99


def test_an_unknown_kernel_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="shortest-paths"):
        risk.compare_networks([], [], kernel="graphlets")


def test_ranks_of_ties_are_their_mean() -> None:
    similar = np.array([[0.5, 0.5, 0.5], [0.9, 0.1, 0.3], [0.2, 0.2, 0.9]])
    assert rank_true_match(similar).tolist() == [2.0, 3.0, 1.0]


def test_privacy_loss_of_guesses_by_chance_is_zero_on_average() -> None:
    """Ranks 1 to L, once each: the attacker's belief in the true person sums to 1."""
    linkage = risk.Linkage(np.arange(1.0, 101.0))
    assert linkage.privacy_loss.mean() == pytest.approx(0.0, abs=1e-12)
    assert linkage.get_share_within(10) == 0.1
    assert linkage.summarise()["mean_rank_by_chance"] == linkage.summarise()["mean_rank"]


def test_people_with_habits_are_linked() -> None:
    """Two kinds of people: commuters between two places, and wanderers over many."""
    rng = np.random.default_rng(4)
    visits = [np.tile([0, 1], 60) if person % 2 else rng.integers(0, 12, 120) for person in range(20)]
    traces = risk.Traces(tuple(range(20)), tuple(visits), tuple(range(12)))
    found = risk.link(traces, size=12)
    assert found.ranks.max() <= 11
    assert risk.link(traces, size=12).ranks.tolist() == found.ranks.tolist()


def test_a_report_counts_people_and_says_so() -> None:
    rows = risk.simulate(people=40, places=30, visits=60, rng=np.random.default_rng(6))
    rows = {name: [*cells, {"user": "once", "place": "x", "time": 1}[name]] for name, cells in rows.items()}
    rows["user"].append(None)
    rows["place"].append("x")
    rows["time"].append(1)
    found = risk.report(rows, user="user", place="place", time="time", sizes=(3, 6), most_people=30)
    assert (found.people, found.left_out, found.skipped) == (30, 11, 1)
    assert [(row["places"], row["directed"]) for row in found.anonymity] == [
        (3, False),
        (3, True),
        (6, False),
        (6, True),
    ]
    for row in found.anonymity:
        assert 1 <= row["k"] <= row["median_class"] <= 30
        assert row["classes"] >= row["unique"] * 30
    assert "30 people; 11 more are left out, and 1 rows lack a value." in repr(found)
    assert "keep them as safe as the rows" in found._repr_html_()
    assert len(found.plot().axes) == 2


def test_measures_agree_with_counts_by_hand() -> None:
    """Five people with three shapes: 2, 2 and 1."""
    there, around = np.array([0, 1, 0, 1]), np.array([0, 1, 2, 0])
    visits = [there, there + 1, around, around[::-1].copy() + 3, np.array([0, 1, 2])]
    traces = risk.Traces(tuple("abcde"), tuple(visits), tuple(range(9)))
    classes = Counter(risk.group_by_shape([risk.make_network(v, 3).get_edges(directed=True) for v in traces.visits]))
    assert sorted(classes.values()) == [1, 2, 2]


@pytest.mark.parametrize("sizes", [(), (0,), (21,)])
def test_sizes_out_of_range_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(InvalidArgument, match="1 to 20"):
        risk.report(ROWS, **NAMES, sizes=sizes)


def test_a_report_needs_two_people_who_move() -> None:
    with pytest.raises(InvalidArgument, match="Fewer than two people"):
        risk.report({"who": ["a", "a", "b"], "where": [1, 2, 1], "when": [1, 2, 3]}, **NAMES)
    with pytest.raises(InvalidArgument, match="two people or more"):
        risk.link(risk.Traces(("a",), (np.array([0, 1]),), (0, 1)))
    with pytest.raises(InvalidArgument, match="at least one person"):
        risk.simulate(people=0, places=1, visits=1, rng=np.random.default_rng(1))
