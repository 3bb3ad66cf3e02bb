"""Two engines on the same fresh tables with the same seeds: ``make compare``.

An engine is ``METHOD`` or ``METHOD:{JSON}``, for example ``dp-psvi-surrogate:{"rounds": 10}``. The page shows geometric
means of KL ratios by kind and epsilon, with their standard errors, and the worst ten.
"""

import os

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import argparse
from typing import Final

from benchmarks import compare_page
from benchmarks.environment import PAGES, describe_environment
from benchmarks.sweep_options import add_options, parse_engine, run_options

TABLES: Final = 230
"""Five blocks of all kinds."""


def main() -> None:
    """Runs both engines on all tables, then writes figures and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=parse_engine)
    parser.add_argument("new", type=parse_engine)
    add_options(parser, PAGES / "compare.csv", TABLES)
    options = parser.parse_args()
    if options.old.name == options.new.name:
        parser.error("name two different engines")
    sweep, outcomes = run_options(options, [options.old, options.new])
    names = options.old.name, options.new.name
    text = compare_page.render_page(outcomes, names, options.out.name, sweep.seed, describe_environment())
    print(text)
    options.out.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
