# Everything that is run by hand or by CI; `make help` lists it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# One thread a process: the numerical libraries would otherwise fight over the cores.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# Processes that tests start would otherwise compile every module anew.
unexport PYTHONDONTWRITEBYTECODE
WORKERS ?= auto
WAITING_WORKERS ?= 4

.DEFAULT_GOAL := help
.PHONY: help install lint lint-style lint-imports lint-prose lint-types check test test-services on-services coverage contract demo adult bench presence-bench reads-bench quality papers private-table unseen breadth trust reliability compare scaling out-of-core faults requests recovery race upload-bench lock format clean ledger-bench

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

install: $(INSTALLED) ## Build .venv from the lock file, with every extra

$(INSTALLED): requirements.lock pyproject.toml client/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Corevault needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e client
	touch $@

lint: $(INSTALLED) ## Style, types, dependency directions, boundaries and plain English
	$(MAKE) --no-print-directory --jobs 2 --output-sync lint-types lint-prose lint-imports lint-style

lint-style:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/check_boundaries.py
	$(BIN)/python tools/check_size.py

lint-imports:
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/check_imports.py

lint-prose:
	$(BIN)/python tools/check_prose.py

lint-types:
	$(BIN)/mypy

format: $(INSTALLED) ## Rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Tests wait for the disk more than they need to: their folders lie in memory where it has room (gibibytes).
ROOM := $(shell df --output=avail --block-size=1G /dev/shm 2> /dev/null | tail -n 1)
ifeq ($(shell [ "$(ROOM)" -ge 8 ] 2> /dev/null && echo yes),yes)
check test test-services on-services coverage: export TMPDIR := /dev/shm
endif

# Tests that compute share the cores. Tests of processes mostly wait; files are sorted so that long ones start first, and
# plugins that these tests do not use are left out.
COMPUTING := $(BIN)/pytest -n $(WORKERS) --dist worksteal
WAITING := $(BIN)/pytest -n $(WAITING_WORKERS) --dist loadfile --no-loadscope-reorder -p no:schemathesis -p no:hypothesispytest \
	$(shell grep -rlF mark.process tests --include='test_*.py' | sort -r)

check: lint ## Lint, and the fast tests: no database, no process, nothing slow
	$(COMPUTING) -m "not (backend or sqlite or services or process or slow)"

# The data of the run before would count as well.
MEASURED := $(BIN)/coverage erase && $(COMPUTING) -p tests.branches
define CHECK_BRANCHES
$(BIN)/coverage combine -q
$(BIN)/coverage json -q -o coverage.json
$(BIN)/python tools/check_coverage.py coverage.json
endef

test: $(INSTALLED) ## Every test that needs no server, on SQLite and local files; the branches that they take, as below
	$(MEASURED) -m "not (services or process)"
	$(CHECK_BRANCHES)
	$(WAITING) -m "process and not services"

test-services: $(INSTALLED) ## Tests that depend on servers, on PostgreSQL, Redis and an S3 server, which it starts itself
	$(BIN)/python -m tests.services $(MAKE) --no-print-directory on-services

on-services: # by the target above
	$(COMPUTING) -m "(backend or services) and not process"
	$(WAITING) -m "(backend or services) and process"

coverage: $(INSTALLED) ## The part of `make test` that measures branches of the privacy packages: 95 % of each at least
	$(MEASURED) -m "not (services or process or slow or hypothesis)" tests/privacy_core tests/ledger tests/enclave
	$(CHECK_BRANCHES)

contract: $(INSTALLED) ## Every operation of the OpenAPI document against the application, with EXAMPLES=200 calls for each role
	EXAMPLES=$(or $(EXAMPLES),200) $(BIN)/pytest tests/contract -q

demo: $(INSTALLED) ## The main job, end to end, on real data
	$(BIN)/python -m demo

adult: $(INSTALLED) ## Census income with all its columns through the HTTP API (needs ../shared/data)
	$(BIN)/python -m demo.adult

bench: $(INSTALLED) ## Speed and memory of queries, runs and prices, and what must be fast beside its limits, into docs/benchmarks
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.queries
	$(BIN)/python -m benchmarks.limits --csv docs/benchmarks/speed.csv
	$(BIN)/python -m benchmarks.quotes

presence-bench: $(INSTALLED) ## Whether processor time tells how many slots hold a row, into docs/benchmarks: five minutes
	$(BIN)/python -m benchmarks.presence --csv docs/benchmarks/presence.csv

reads-bench: $(INSTALLED) ## Reads of public releases at fixed rates, server and generator on two cores
	$(BIN)/python -m benchmarks.reads --csv docs/benchmarks/reads.csv

quality: $(INSTALLED) ## How far the pseudocoreset's posterior is from the full one
	$(BIN)/python -m benchmarks.quality

papers: $(INSTALLED) ## The papers' experiments, into docs/benchmarks: half an hour
	$(BIN)/python -m benchmarks.papers gaussian-mean linear-regression logistic-small logistic-large privacy-sweep

private-table: $(INSTALLED) ## What private pseudocoresets reach, beside what they must, into docs/benchmarks
	$(BIN)/python -m benchmarks.papers private-table

unseen: $(INSTALLED) ## Private pseudocoresets on tables of many shapes, over the floor of each, into docs/benchmarks
	$(BIN)/python -m benchmarks.papers unseen

breadth: $(INSTALLED) ## The same on a hundred random tables, into docs/benchmarks
	$(BIN)/python -m benchmarks.breadth

reliability: $(INSTALLED) ## Grades, coverage and distance of releases of fresh tables of every kind, into docs/benchmarks
	$(BIN)/python -m benchmarks.reliability --processes 2

compare: $(INSTALLED) ## Two engines on the same fresh tables, into docs/benchmarks (OLD='METHOD:{JSON}' NEW='METHOD:{JSON}')
	$(BIN)/python -m benchmarks.compare '$(OLD)' '$(NEW)' --processes 2

trust: $(INSTALLED) ## Whether releases of 1,300 random tables can be trusted that say so, into docs/benchmarks
	$(BIN)/python -m benchmarks.trust

scaling: $(INSTALLED) ## Time and memory of private methods by rows, features and points, into docs/benchmarks
	$(BIN)/python -m benchmarks.papers scaling

out-of-core: $(INSTALLED) ## A query about an encrypted table that does not fit into memory, beside a plain read (ROWS=10000000)
	$(BIN)/python -m tools.out_of_core --rows $(or $(ROWS),10000000) --repeats $(or $(REPEATS),2) --csv docs/benchmarks/out-of-core.csv

faults: $(INSTALLED) ## Seeded runs of crashes, lost and late messages, clock jumps and full disks (RUNS=10000)
	$(BIN)/python -m tests.faults.seeded --runs $(or $(RUNS),10000)

requests: $(INSTALLED) ## Random requests over random declarations: each one that is accepted ends with a release (EXAMPLES=10000)
	$(BIN)/python -m tests.properties.random_requests --examples $(or $(EXAMPLES),10000)

ledger-bench: $(INSTALLED) ## Reservations a second on a PostgreSQL of its own, into docs/benchmarks
	$(BIN)/python -m benchmarks.ledger --csv docs/benchmarks/ledger.csv

upload-bench: $(INSTALLED) ## A body of 5 GiB into the vault, beside the bare disk, and from CSV to the sealed table (GIB=5)
	$(BIN)/python -m benchmarks.uploads --gib $(or $(GIB),5) --csv docs/benchmarks/uploads.csv

recovery: $(INSTALLED) ## How soon a job runs again whose worker was killed, on PostgreSQL and Redis with default settings
	$(BIN)/python -m tests.faults.recovery

race: $(INSTALLED) ## 1,000 races of 24 clients on SQLite, and a million attempts on PostgreSQL: nobody overspends
	$(BIN)/python -m tests.ledger.race
	$(BIN)/python -m tests.ledger.stampede

lock: ## Pin the dependencies anew, with hashes and without addresses, of all and of what the image takes (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras --no-header \
		--no-annotate --all-extras pyproject.toml client/pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras --no-header \
		--no-annotate --extra build --extra oidc --extra tracing -c requirements.lock pyproject.toml -o requirements-service.lock

clean: ## Remove the environment and what tools left behind
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-output
