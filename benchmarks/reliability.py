"""Reliability of releases on fresh tables: ``make reliability``.

Draws tables of every kind (:mod:`benchmarks.tables`) from a fresh seed, and releases each at every epsilon. Each
release is compared with the full posterior, which the service never computes: its KL, its KL over the floor, its grade,
and the coverage of its intervals. Noise is rounded floating point and follows the seed. The page depends on the CSV and
JSON files only.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
import json
from typing import Final

from benchmarks import reliability_page
from benchmarks.environment import PAGES, describe_environment
from benchmarks.sweep import read_outcomes
from benchmarks.sweep_options import add_options, parse_engine, run_options

METHOD: Final = "dp-psvi-surrogate"
TABLES: Final = 2068
"""44 blocks of all kinds, each table at one epsilon."""


def main() -> None:
    """Runs all tables, then writes figures and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, PAGES / "reliability.csv", TABLES)
    parser.add_argument("--engine", type=parse_engine, default=parse_engine(METHOD), help="METHOD or METHOD:{JSON}")
    parser.add_argument("--render", action="store_true", help="write the page of the existing releases")
    options = parser.parse_args()
    circumstances = options.out.with_suffix(".json")
    if not options.render:
        run_options(options, [options.engine])
        circumstances.write_text(json.dumps(describe_environment(), indent=1) + "\n")
    text = reliability_page.render_page(
        read_outcomes(options.out), options.out.name, json.loads(circumstances.read_text())
    )
    print(text)
    options.out.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
