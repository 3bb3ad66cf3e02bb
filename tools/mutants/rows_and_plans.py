"""Mutants of plans, of streamed rows, of designs and of weights."""

from typing import Final

from tools.mutants.mutant import Mutant

ZONE: Final = "app/inference/private_zone/"
TESTS: Final = "tests/inference/private_zone/"

ROWS_AND_PLANS: Final = (
    Mutant(
        "streamed queries have one subsample",
        "W4",
        ZONE + "rows.py",
        (
            (
                "draw_poisson_pieces(self._sampling, self._slots, rate)",
                "draw_poisson_pieces(__import__('copy').deepcopy(self._sampling), self._slots, rate)",
            ),
        ),
        TESTS + "test_rows.py::test_streamed_rows_give_the_same_integers_as_held_ones",
    ),
    Mutant(
        "a repeated query is answered again under one event",
        "W4",
        ZONE + "oracle.py",
        (
            (
                "        self.__pending.popleft()\n        self.__executed.append((planned.event, 1))\n",
                (
                    "        if not self.__executed or self.__executed[-1][0] != planned.event:\n"
                    "            self.__pending.popleft()\n"
                    "            self.__executed.append((planned.event, 1))\n"
                ),
            ),
        ),
        TESTS + "test_oracle.py::test_a_query_beyond_the_plan_is_refused",
    ),
    Mutant(
        "sampling rate x 1.01",
        "W4",
        ZONE + "sampling.py",
        (
            (
                "    if rate >= 1:\n        return np.arange(slots)\n",
                "    if rate >= 1:\n        return np.arange(slots)\n    rate *= 1.01\n",
            ),
        ),
        TESTS + "test_sampling.py::test_few_expected_slots_have_binomial_sizes_too",
    ),
    Mutant(
        "a sum is divided by the share of present rows",
        "W6",
        ZONE + "rows.py",
        (
            (
                "            return query.sum(self._model, self._rows, self._present, self._each)\n",
                (
                    "            whole = query.sum(self._model, self._rows, self._present, self._each)\n"
                    "            return np.rint(whole / max(self._present.mean(), 0.1)).astype(np.int64)\n"
                ),
            ),
        ),
        TESTS + "test_oracle.py::test_null_rows_change_nothing",
    ),
    Mutant(
        "columns are centred at the mean of their rows",
        "W6",
        "app/inference/core/designs/columns.py",
        (
            (
                "number: Array64 = np.subtract(cells, center, dtype=np.float64)",
                "number: Array64 = np.subtract(cells, np.nanmean(cells), dtype=np.float64)",
            ),
        ),
        "tests/inference/core/test_design.py::test_columns_and_values_follow_the_declaration",
    ),
    Mutant(
        "targets are cut at quantiles of the rows",
        "W6",
        "app/inference/core/design.py",
        (
            (
                "np.clip(y, lower, upper), max(-lower, upper)",
                "np.clip(y, *np.nanquantile(y, [0.05, 0.95])), max(-lower, upper)",
            ),
        ),
        "tests/inference/core/test_design.py::test_targets_are_clamped_to_declared_bounds_row_by_row",
    ),
    Mutant(
        "the weight of a bounded score depends on its target",
        "W16",
        "app/inference/models/logistic.py",
        (
            (
                "bound_scores(directions, failure, np.maximum(failure, 1 - failure), clip)",
                "bound_scores(directions, failure, failure, clip)",
            ),
        ),
        "tests/conformance/test_model_scores.py::test_bounded_scores_are_conditionally_unbiased",
    ),
    Mutant(
        "events that differ by rounding are one event",
        "W9",
        "app/privacy/events.py",
        (
            (
                "        if merged and merged[-1][0] == event:\n",
                (
                    "        import re\n\n"
                    "        near = [re.sub(r'([.][0-9])[0-9]{6,}', r'\\1', repr(each)) for each, _ in (*merged[-1:], (event, 1))]\n"
                    "        if merged and near[0] == near[1]:\n"
                ),
            ),
        ),
        "tests/privacy_core/test_events.py::test_events_that_differ_by_rounding_are_not_merged",
    ),
    Mutant(
        "a method without privacy reads a private table",
        "W8",
        "app/inference/runner.py",
        (('    if facts.sensitivity != "public":\n', "    if False:\n"),),
        "tests/conformance/test_methods.py::TestPublicMethods::test_public_method_is_refused_on_private_data",
    ),
)
