"""Mutants of the private zone: sampling, clipping and noise."""

from typing import Final

from tools.mutants.mutant import Mutant

ZONE: Final = "app/inference/private_zone/"
TESTS: Final = "tests/inference/private_zone/"
AUDIT: Final = "tests/inference/audit/test_mechanism.py::"

SAMPLING: Final = (
    Mutant(
        "one subsample serves all queries",
        "W4",
        ZONE + "sampling.py",
        (
            (
                "(draw_poisson_subsample(self._rng, self._slots, rate).astype(self._dtype) for rate in self._rates)",
                "[draw_poisson_subsample(self._rng, self._slots, self._rates[0]).astype(self._dtype)] * len(self._rates)",
            ),
        ),
        "tests/inference/audit/test_randomness.py::test_w4_each_query_has_a_fresh_subsample",
    ),
    Mutant(
        "a gap of zero is possible",
        "W4",
        ZONE + "sampling.py",
        (
            (
                "np.clip(rng.geometric(rate, size=size), 1, slots + 1)",
                "np.clip(rng.geometric(rate, size=size), 0, slots + 1)",
            ),
        ),
        TESTS + "test_sampling.py::test_w4_a_gap_of_zero_does_not_repeat_a_slot",
    ),
    Mutant(
        "dense subsamples have a fixed size",
        "W4",
        ZONE + "sampling.py",
        (("count = int(rng.binomial(slots, rate))", "count = round(slots * rate)"),),
        TESTS + "test_sampling.py::test_sparse_and_dense_subsets_have_binomial_sizes_and_even_inclusion",
    ),
    Mutant(
        "the event is consumed after the answer",
        "W4",
        ZONE + "oracle.py",
        (
            ("        self.__executed.append((planned.event, 1))\n", ""),
            (
                "        return query.answer(noised)",
                "        self.__executed.append((planned.event, 1))\n        return query.answer(noised)",
            ),
        ),
        TESTS + "test_oracle.py::test_an_event_is_consumed_before_the_answer",
    ),
    Mutant(
        "the key of subsampling has 32 bits",
        "W7",
        ZONE + "rng.py",
        (("secrets.randbits(256)", "secrets.randbits(32)"),),
        TESTS + "test_randomness.py::test_the_key_of_subsampling_has_256_random_bits",
    ),
    Mutant(
        "the key of subsampling is fixed",
        "W7",
        ZONE + "rng.py",
        (("secrets.randbits(256)", "2**255 + 1"),),
        TESTS + "test_randomness.py::test_generators_start_from_fresh_entropy",
    ),
)

CLIPPING: Final = (
    Mutant(
        "contributions with beta are not clipped, because their potentials are bounded",
        "W5",
        ZONE + "queries/robust.py",
        (
            (
                "return PotentialSum.sum(self, make_robust(model, self.beta), rows, present, rows_per_unit)",
                "return PotentialSum(self.draws, 1e3, self.antithetic).sum(make_robust(model, self.beta), rows, present, rows_per_unit) * round(1e3 / self.clip)",
            ),
        ),
        "tests/inference/methods/test_dp_psvi_beta.py::test_w5_zeroing_a_unit_moves_the_sum_by_its_bound_at_most",
    ),
    Mutant(
        "a query that is sent to another process loses its beta",
        "W5",
        ZONE + "queries/arrays.py",
        (
            (
                "for name, array in arrays.items() if name != _KIND",
                'for name, array in arrays.items() if name not in {_KIND, "beta"}',
            ),
        ),
        "tests/inference/methods/test_dp_psvi_beta.py::test_query_of_another_beta_is_another_query",
    ),
    Mutant(
        "the clipping norm is a median of rows",
        "W6",
        ZONE + "queries/blocks.py",
        (
            (
                "clip_to_grid(sums, units, clip)",
                "clip_to_grid(sums, units, min(clip, float(np.median(np.linalg.norm(sums, axis=1))) or clip))",
            ),
        ),
        TESTS + "test_queries.py::test_a_sum_is_the_total_of_the_sums_of_single_units",
    ),
    Mutant(
        "sums are clipped, not units",
        "W5",
        ZONE + "queries/blocks.py",
        (
            (
                "total += compute_exact_sum(clip_to_grid(sums, units, clip))",
                "total += compute_exact_sum(np.rint(sums * np.float32(1 / clip) * 2.0**24) * units[:, None])",
            ),
        ),
        AUDIT + "test_w5_a_canary_reaches_the_bound_and_does_not_exceed_it",
    ),
    Mutant(
        "the rows of a person are clipped one by one",
        "W5",
        ZONE + "queries/blocks.py",
        (
            (
                "clip_to_grid(sums, units, clip)",
                "sum_over_units(clip_to_grid(contributions(block[: len(there)]), there, clip), there, rows_per_unit)[0]",
            ),
        ),
        AUDIT + "test_w5_a_canary_reaches_the_bound_and_does_not_exceed_it",
    ),
    Mutant(
        "rounding is not checked again",
        "W5",
        ZONE + "mechanisms.py",
        (("zero_rows_unless(values, is_inside)", "zero_rows_unless(values, is_inside | True)"),),
        TESTS + "test_mechanisms.py::test_a_row_outside_the_ball_after_clipping_is_zeroed",
    ),
    Mutant(
        "factors on the edge of the ball pass",
        "W5",
        ZONE + "mechanisms.py",
        (("np.vecdot(factors, factors) < np.float32(GRID)", "np.vecdot(factors, factors) <= np.float32(GRID)"),),
        TESTS + "test_mechanisms.py::test_the_edge_of_the_factors_ball_is_exact",
    ),
    Mutant(
        "absent rows of a person are summed",
        "W5",
        ZONE + "queries/blocks.py",
        (("    values *= present[:, None]\n", ""),),
        TESTS + "test_queries.py::test_padding_a_unit_with_absent_rows_changes_nothing",
    ),
    Mutant(
        "bounds of targets come from the rows",
        "W6",
        "app/inference/core/design.py",
        (("lower, upper = self.target_bounds", "lower, upper = float(np.nanmin(y)), float(np.nanmax(y))"),),
        "tests/inference/core/test_design.py::test_targets_are_clamped_to_declared_bounds_row_by_row",
    ),
    Mutant(
        "the columns of a term are centred by their rows",
        "W6",
        "app/inference/core/designs/mapped.py",
        (
            (
                "out[:, part] = round_off_traces(self.transform(coordinates), 1.0)",
                (
                    "made = self.transform(coordinates)\n"
                    "            out[:, part] = made - np.nanmean(made, axis=1, keepdims=True)"
                ),
            ),
        ),
        TESTS + "test_terms.py::test_one_unit_moves_a_sum_by_at_most_the_grids_radius",
    ),
    Mutant(
        "the place of a row decides how its columns of a term are rounded",
        "W5",
        "app/inference/core/designs/fourier.py",
        (
            (
                (
                    "        for column, own in zip(x, self.weights.T, strict=True):\n"
                    "            turns += own[:, None] * column\n"
                ),
                "        turns += self.weights.astype(np.float32) @ x.astype(np.float32)\n",
            ),
        ),
        "tests/inference/core/designs/test_encoders.py::test_a_row_has_the_same_bits_at_every_place",
    ),
    Mutant(
        "traces of a term's columns are kept",
        "W14",
        "app/inference/core/designs/mapped.py",
        (("round_off_traces(self.transform(coordinates), 1.0)", "self.transform(coordinates)"),),
        "tests/inference/core/designs/test_encoders.py::test_no_step_of_a_term_reaches_a_subnormal_number",
    ),
    Mutant(
        "a missing number in a term is the middle of the bounds",
        "W14",
        "app/inference/core/designs/columns.py",
        (
            (
                (
                    "        present &= number == number  # noqa: PLR0124 - NaN is unequal to itself\n"
                    "        return np.clip(number, -1, 1)[None]"
                ),
                "        return np.nan_to_num(np.clip(number, -1, 1))[None]",
            ),
        ),
        "tests/inference/core/designs/test_encoders.py::test_encoding_is_total_for_hostile_cells",
    ),
    Mutant(
        "a missing cell takes the mean of its batch",
        "W6",
        "workers/enclave/cells.py",
        (
            (
                "0.0 if column.impute is None else _read_impute(column)",
                "0.0 if column.impute is None else np.nanmean(parsed)",
            ),
        ),
        "tests/enclave/test_cells.py::test_missing_cell_takes_the_declared_impute_value",
    ),
)

NOISE: Final = (
    Mutant(
        "the noise source draws 3 % less noise",
        "W7",
        ZONE + "mechanisms.py",
        (("math.nextafter(scale * steps, math.inf)", "math.nextafter(0.97 * scale * steps, math.inf)"),),
        TESTS + "test_mechanisms.py::test_noise_has_the_planned_variance_to_two_percent_of_its_scale",
    ),
    Mutant(
        "the service has 5 % less noise",
        "W7",
        ZONE + "oracle.py",
        (("query.scales(planned.event.noise_multiplier)", "query.scales(0.95 * planned.event.noise_multiplier)"),),
        "tests/workers/test_service_noise.py::test_answers_on_an_empty_table_have_the_planned_noise",
    ),
    Mutant(
        "noise is drawn once for each scale",
        "W7",
        ZONE + "mechanisms.py",
        (
            (
                "return round_to_steps(np.asarray(self._measurements[fine]([0] * count), dtype=np.int64), steps)",
                (
                    "drawn = self.__dict__.setdefault((fine, count), self._measurements[fine]([0] * count))\n"
                    "        return round_to_steps(np.asarray(drawn, dtype=np.int64), steps)"
                ),
            ),
        ),
        "tests/inference/audit/test_randomness.py::test_w7_no_noise_is_used_twice",
    ),
    Mutant(
        "a setting builds a service without noise",
        "W7",
        "workers/computation.py",
        (("noise=DiscreteGaussian(), sampling", "noise=NOISES[plan.method], sampling"),),
        "tools/check_boundaries.py",
    ),
    Mutant(
        "histograms have too little noise",
        "W5",
        ZONE + "queries/lengths.py",
        (("        return sigma * GRID\n", "        return sigma * GRID / 2**0.5\n"),),
        AUDIT + "test_aligned_answers_have_the_claimed_law",
    ),
    Mutant(
        "matrices have too little noise off the diagonal",
        "W5",
        ZONE + "queries/information.py",
        (("sigma * GRID / math.sqrt(2))", "sigma * GRID / 4)"),),
        AUDIT + "test_aligned_answers_have_the_claimed_law",
    ),
    Mutant(
        "histograms are exact",
        "W7",
        ZONE + "oracle.py",
        (
            (
                "        return query.answer(noised)",
                "        return query.answer(noised if 'histogram' not in planned.kind else self.__rows.sum(query))",
            ),
        ),
        AUDIT + "test_aligned_answers_have_the_claimed_law",
    ),
    Mutant(
        "each group of a person is clipped alone",
        "W5",
        ZONE + "queries/groups.py",
        (
            (
                "    whole = clip_to_grid(sums.reshape(units, -1), np.any(present, axis=1), clip)\n",
                (
                    "    blocks = sums.reshape(len(places), -1)\n"
                    "    whole = clip_to_grid(blocks, np.repeat(np.any(present, axis=1), len(blocks) // units), clip)\n"
                ),
            ),
        ),
        TESTS + "test_group_queries.py::test_w5_one_person_moves_the_sum_by_at_most_the_grids_radius",
    ),
    Mutant(
        "the rows of a person in one group are clipped row by row",
        "W5",
        ZONE + "queries/groups.py",
        (("    if rows == 1:\n", "    if rows >= 1:\n        present = present.reshape(-1, 1)\n"),),
        TESTS + "test_group_queries.py::test_w5_one_person_moves_the_sum_by_at_most_the_grids_radius",
    ),
)
