# Each target first makes what it needs in $(VENV); stamp files make the second
# call quick. `make PYTHON=python3.12 test` uses another interpreter (after `make clean`).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Twice quiet hides warnings and progress, and leaves errors.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check

.PHONY: demo test check check-cpus bench study fuzz docs dist clean
.DELETE_ON_ERROR:

demo: $(VENV)/.stamp-package
	$(BIN)/python examples/demo.py

# Tests run on all cores; linear algebra that shares them again would only wait.
test: $(VENV)/.stamp-test
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal

# lint-imports checks which part of the package may import which ([tool.importlinter] in pyproject.toml).
check: $(VENV)/.stamp-test $(VENV)/.stamp-check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict src tests/typed/use.py
	$(BIN)/lint-imports --no-cache

# Comparisons to the bit, as other CPUs would round them.
check-cpus: $(VENV)/.stamp-test
	OMP_NUM_THREADS=1 $(BIN)/python tests/check_cpus.py

bench: $(VENV)/.stamp-bench
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.probit
	$(BIN)/python -m benchmarks.families
	$(BIN)/python -m benchmarks.searches
	$(BIN)/python -m benchmarks.averages
	$(BIN)/python -m benchmarks.bootstrap
	$(BIN)/python -m benchmarks.command_line
	$(BIN)/python -m benchmarks.reports
	$(BIN)/python -m benchmarks.parquet
	$(BIN)/python -m benchmarks.dask_workers

study: $(VENV)/.stamp-test
	$(BIN)/python -m pytest -m study -s

# Ten minutes of hostile input; a seed that found something is printed, and can be run again.
fuzz: $(VENV)/.stamp-test
	$(BIN)/python -m fuzz

# The variable hides the theme's notice about its own future.
docs: $(VENV)/.stamp-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The wheel and the sdist, as they would be uploaded.
dist: $(VENV)/.stamp-dist
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/python -m twine check --strict dist/*

clean:
	rm -rf $(VENV) build dist site reports .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.stamp-venv:
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.stamp-package: pyproject.toml $(VENV)/.stamp-venv
	$(PIP_INSTALL) --editable '.[plots]'
	@touch $@

# .stamp-test, .stamp-check, .stamp-docs, .stamp-dist and .stamp-bench, each from the requirements of that name.
$(VENV)/.stamp-%: requirements/%.txt $(VENV)/.stamp-package
	$(PIP_INSTALL) --requirement $<
	@touch $@
