# Everything runs in .venv, which the first target that needs it makes. Only Python 3.11+ is assumed.
PYTHON ?= python3
BIN := .venv/bin
# How many tests at a time: one more than there are cores, since some only wait.
JOBS ?= $(shell expr $$(nproc 2>/dev/null || echo 1) + 1)

.PHONY: demo test test-long lint types clauses bench docs site dist screenshots clean

demo: .venv/installed
	@$(BIN)/recollect models pull || echo "going on without a model: recall is by words alone"
	@$(BIN)/recollect demo

# PostgreSQL comes in a wheel and is started for the run. RECOLLECT_TEST_DSN=postgresql://… names a server to use instead,
# as a superuser; RECOLLECT_TEST_STORES=sqlite,postgresql is for some of the stores only. For those that take no seconds
# each: .venv/bin/pytest -n 2 -m "not slow". Each run tries some of the points at which a write can be interrupted or
# killed; it prints RECOLLECT_TEST_SEED=…, which repeats the same ones.
test: .venv/tested
	@sh tests/support/programs.sh
	@$(BIN)/pytest -n $(JOBS) --dist worksteal --durations=25

# The same, with many more examples, all rounds and all points, and a minute for each store's mixed run.
test-long: .venv/tested
	@sh tests/support/programs.sh
	@RECOLLECT_TEST_PROFILE=long RECOLLECT_TEST_SECONDS=180 $(BIN)/pytest -n $(JOBS) --dist worksteal --timeout 3600

lint: .venv/developed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/deptry src
	@$(BIN)/python tests/support/plain_names.py

types: .venv/developed
	@$(BIN)/pyright --project pyproject.toml

clauses: .venv/tested
	@$(BIN)/python tests/support/clause_report.py

bench: .venv/installed
	@$(BIN)/python benchmarks/engine.py

# The files that are made from the operations: the types of AsyncMemory, and the tables of the docs.
docs: .venv/tested
	@$(BIN)/python tests/support/generated.py

# The documentation as a web site in site/, with search. A broken link is an error.
site: .venv/documented
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

# Wheel and sdist in dist/, each tried as a user would: in a fresh environment, outside this folder.
dist: .venv/released
	@rm -rf dist
	@$(BIN)/python -m build --outdir dist . >/dev/null
	@$(BIN)/twine check --strict dist/*
	@PYTHON=$(PYTHON) sh .ci/try-dist dist

# The pictures in docs/images, of a memory that is made up.
screenshots: .venv/tested
	@$(BIN)/python tests/support/screenshots.py

.venv/installed: pyproject.toml
	@$(PYTHON) -c "import sys; sys.version_info >= (3, 11) or sys.exit('recollect needs Python 3.11 or newer; set PYTHON=…')"
	@echo "installing recollect into .venv …"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[local]'
	@touch $@

.venv/tested: .venv/installed
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[test]"
	@touch $@

# [dev] has all that [test] has.
.venv/developed: .venv/installed
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[dev]"
	@touch .venv/tested $@

.venv/documented: .venv/installed
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[docs]"
	@touch $@

.venv/released: .venv/installed
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[release]"
	@touch $@

clean:
	rm -rf .venv site .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist
