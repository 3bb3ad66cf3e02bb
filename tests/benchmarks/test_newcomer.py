"""The ten lines of the client's guide, and the page about them."""

import ast

from benchmarks.newcomer import IMPORT, INSTALL, Cost, count_lines, find_late, read_ten_lines, render_page


def test_the_ten_lines_are_ten_lines_of_python() -> None:
    code = read_ten_lines()
    assert count_lines(code) == 10
    imported = {each.name for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import) for each in node.names}
    assert imported == {"arviz", "corevault", "numpy"}
    assert "plot_forest" in code


def test_a_missed_goal_is_on_the_page() -> None:
    fast = {INSTALL: Cost(40.0, 11.0), IMPORT: Cost(0.1, 0.05)}
    slow = fast | {IMPORT: Cost(0.1, 0.4)}
    assert (find_late(fast), find_late(slow)) == ([], [IMPORT])
    assert "Both goals are met." in render_page(fast, {}, 10)
    assert "Missed: import corevault." in render_page(slow, {"a use": [("numpy", 40.0)]}, 10)
