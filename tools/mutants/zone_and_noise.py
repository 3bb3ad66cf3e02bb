"""Further mutants of sampling, clipping and noise."""

from typing import Final

from tools.mutants.mutant import Mutant

ZONE_AND_NOISE: Final = (
    Mutant(
        "dense subsamples are drawn with replacement",
        "W4",
        "app/inference/private_zone/sampling.py",
        (
            (
                "rng.choice(slots, size=count, replace=False, shuffle=False)",
                "rng.choice(slots, size=count, replace=True)",
            ),
        ),
        "tests/inference/private_zone/test_sampling.py::test_sparse_and_dense_subsets_have_binomial_sizes_and_even_inclusion",
    ),
    Mutant(
        "subsampling uses the fast generator",
        "W7",
        "app/inference/private_zone/rng.py",
        (("np.random.Generator(ChaCha(key=secrets.randbits(256)))", "np.random.Generator(np.random.SFC64())"),),
        "tests/inference/private_zone/test_randomness.py::test_the_key_of_subsampling_has_256_random_bits",
    ),
    Mutant(
        "noise comes from the generator of post-processing",
        "W7",
        "app/inference/private_zone/mechanisms.py",
        (
            (
                "np.asarray(self._measurements[fine]([0] * count), dtype=np.int64)",
                "np.rint(fine * np.random.default_rng().standard_normal(count)).astype(np.int64)",
            ),
        ),
        "tools/check_boundaries.py",
    ),
    Mutant(
        "scores have noise of sigma instead of sigma K",
        "W5",
        "app/inference/private_zone/queries/scores.py",
        (("        return sigma * GRID\n", "        return sigma\n"),),
        "tests/inference/audit/test_mechanism.py::test_aligned_answers_have_the_claimed_law",
    ),
    Mutant(
        "tails have half of their noise",
        "W5",
        "app/inference/private_zone/queries/tails.py",
        (("        return sigma * GRID\n", "        return 0.5 * sigma * GRID\n"),),
        "tests/inference/audit/test_mechanism.py::test_aligned_answers_have_the_claimed_law",
    ),
    Mutant(
        "statistics have half of their noise",
        "W5",
        "app/inference/private_zone/queries/statistics.py",
        (("        return sigma * GRID\n", "        return 0.5 * sigma * GRID\n"),),
        "tests/inference/audit/test_mechanism.py::test_aligned_answers_have_the_claimed_law",
    ),
    Mutant(
        "topics have half of their noise",
        "W5",
        "app/inference/private_zone/queries/topics.py",
        (("        return sigma * GRID\n", "        return 0.5 * sigma * GRID\n"),),
        "tests/inference/audit/test_mechanism.py::test_aligned_answers_have_the_claimed_law",
    ),
    Mutant(
        "an answer has the noise of the event before",
        "W4",
        "app/inference/private_zone/oracle.py",
        (
            (
                "query.scales(planned.event.noise_multiplier)",
                "query.scales(self.__executed[max(0, len(self.__executed) - 2)][0].noise_multiplier)",
            ),
        ),
        "tests/inference/private_zone/test_oracle.py::test_mixed_events_are_carried_out_in_order",
    ),
    Mutant(
        "two answers share one event, with noise / sqrt 2",
        "W4",
        "app/inference/private_zone/oracle.py",
        (("query.scales(planned.event.noise_multiplier)", "query.scales(planned.event.noise_multiplier / 2**0.5)"),),
        "tests/inference/private_zone/test_oracle.py::test_noise_has_the_scale_of_the_event",
    ),
    Mutant(
        "all coordinates get one draw",
        "W7",
        "app/inference/private_zone/mechanisms.py",
        (("return sums + self._draw(len(sums), scale)", "return sums + self._draw(1, scale)"),),
        "tests/inference/audit/test_randomness.py::test_w7_no_noise_is_used_twice",
    ),
    Mutant(
        "noise is discrete Laplace of the same variance",
        "W7",
        "app/inference/private_zone/mechanisms.py",
        (
            (
                'library.m.make_gaussian(domain, library.l2_distance(T="f64"), scale=fine)',
                'library.m.make_laplace(domain, library.l1_distance(T="i64"), scale=fine / 2**0.5)',
            ),
        ),
        "tests/inference/audit/test_randomness.py::test_w7_noise_has_its_law_to_one_percent_of_its_scale",
    ),
    Mutant(
        "a row that is not a number escapes clipping",
        "W5",
        "app/inference/private_zone/mechanisms.py",
        (
            (
                "is_inside = _squared_norms(values) <= np.float32((1 - length * _LOSS) * float(GRID) ** 2)",
                "is_inside = ~(_squared_norms(values) > np.float32((1 - length * _LOSS) * float(GRID) ** 2))",
            ),
        ),
        "tests/inference/private_zone/test_mechanisms.py::test_w5_a_row_that_is_not_finite_contributes_zero",
    ),
    Mutant(
        "null rows of padding contribute",
        "W5",
        "app/inference/private_zone/mechanisms.py",
        (
            (
                "np.minimum(radius / np.sqrt(_squared_norms(values)), GRID / clip) * present",
                "np.minimum(radius / np.sqrt(_squared_norms(values)), GRID / clip)",
            ),
        ),
        "tests/inference/private_zone/test_mechanisms.py::test_an_absent_row_contributes_exactly_zero",
    ),
    Mutant(
        "absent rows of a person enter matrices",
        "W5",
        "app/inference/private_zone/mechanisms.py",
        (("            parts *= present[:, :, None]\n", "            parts *= present.any(axis=1)[:, None, None]\n"),),
        "tests/inference/private_zone/test_queries.py::test_padding_a_unit_with_absent_rows_changes_nothing",
    ),
    Mutant(
        "the rows of a person count singly in histograms",
        "W5",
        "app/inference/private_zone/queries/lengths.py",
        (
            (
                "sums, units = sum_over_units(append_squares(values) if self.squares else values, there, rows_per_unit)",
                "sums, units = append_squares(values) if self.squares else values, there",
            ),
        ),
        "tests/inference/audit/test_mechanism.py::test_w5_a_canary_reaches_the_bound_and_does_not_exceed_it",
    ),
    Mutant(
        "the factors of a person are scaled row by row",
        "W5",
        "app/inference/private_zone/queries/information.py",
        (
            ("factors.reshape(len(there) // rows_per_unit, -1)", "factors.reshape(len(there), -1)"),
            ("there.reshape(-1, rows_per_unit), bound", "there.reshape(-1, 1), bound"),
        ),
        "tests/inference/audit/test_mechanism.py::test_w5_a_canary_reaches_the_bound_and_does_not_exceed_it",
    ),
)
