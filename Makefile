# Everything runs in .venv, which the first target that needs it makes. Only Python 3.11+ is assumed.
PYTHON ?= python3
BIN := .venv/bin
# How many tests at a time: one more than there are cores, since some only wait.
JOBS ?= $(shell expr $$(nproc 2>/dev/null || echo 1) + 1)

.PHONY: demo test test-long lint types clauses bench screenshots clean

demo: .venv/installed
	@$(BIN)/recollect models pull || echo "going on without a model: recall is by words alone"
	@$(BIN)/recollect demo

# PostgreSQL comes in a wheel and is started for the run. RECOLLECT_TEST_DSN=postgresql://… names a server to use instead,
# as a superuser; RECOLLECT_TEST_STORES=sqlite,postgresql is for some of the stores only. For those that take no seconds
# each: .venv/bin/pytest -n 2 -m "not slow".
test: .venv/tested
	@sh tests/support/programs.sh
	@$(BIN)/pytest -n $(JOBS) --dist worksteal --durations=25

# The same, with ten times the examples, all the rounds, and a minute for each store's mixed run.
test-long: .venv/tested
	@sh tests/support/programs.sh
	@RECOLLECT_TEST_PROFILE=long RECOLLECT_TEST_SECONDS=180 $(BIN)/pytest -n $(JOBS) --dist worksteal --timeout 3600

lint: .venv/developed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/deptry src

types: .venv/developed
	@$(BIN)/pyright --project pyproject.toml

clauses: .venv/tested
	@$(BIN)/python tests/support/clause_report.py

bench: .venv/installed
	@$(BIN)/python benchmarks/engine.py

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

.venv/developed: .venv/installed
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable ".[dev]"
	@touch $@

clean:
	rm -rf .venv .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist
