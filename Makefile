# Needs Python 3.11+, git and make. Uses uv when it is there, else venv and pip.
#   make demo                       rewrite the flax examples and compare before and after
#   make test [PYTHON=python3.12]   checks and the quick tests: every construct and hazard at least once
#   make test-deep                  the slow tests: more cases of them, whole models, many processes
#   make mutants                    which check of parity sees which one-line fault (hours; goes on where it was)
#   make generated [N=1000]         random programs before and after both rewrites (goes on where it was)
#   make statements [N=1000]        random classes of plain Python around layers, before and after
PYTHON ?= $(shell ./constraints/find_python)
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
VENV ?= .venv/py$(VERSION)
PY := $(VENV)/bin/python
UV := $(shell command -v uv 2>/dev/null)
CONSTRAINTS := $(wildcard constraints/py$(VERSION).txt)
INSTALL := $(if $(UV),$(UV) pip install --quiet --python $(PY),$(PY) -m pip install --quiet) \
	$(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
MARK ?= not slow
WORKERS ?= 2
N ?= 1000

export JAX_PLATFORMS ?= cpu

.PHONY: demo test test-deep mutants generated statements check-python clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(PY) -m benchmarks.corpus --set flax-examples

# Every check runs even when an earlier one fails; the tests come last. Types are checked against the
# pinned jax and flax only: their annotations differ from version to version. Most of the time goes into
# compiling, so the quick tests let XLA leave out what costs most of it; the deep ones do not.
test: $(VENV)/.test
	@status=0; \
	$(PY) -m ruff check . || status=1; \
	$(PY) -m ruff format --check . || status=1; \
	$(if $(CONSTRAINTS),$(PY) -m mypy --strict || status=1;) \
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(PY) -m pytest -n $(WORKERS) --dist loadfile -m "$(MARK)" || status=1; \
	exit $$status

test-deep: $(VENV)/.test
	$(PY) -m pytest -n $(WORKERS) --dist loadfile -m slow

mutants: $(VENV)/.test
	$(PY) -m benchmarks.mutants

generated: $(VENV)/.test
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(PY) -m benchmarks.generated -n $(N) --workers $(WORKERS)

statements: $(VENV)/.test
	JAX_DISABLE_MOST_OPTIMIZATIONS=1 $(PY) -m benchmarks.statements -n $(N)

check-python:
	@test -n "$(VERSION)" || { echo "no Python 3.11 or newer found: install one, or pass PYTHON=..." >&2; exit 2; }

$(PY): | check-python
	$(if $(UV),$(UV) venv --quiet --python $(PYTHON) $(VENV),$(PYTHON) -m venv $(VENV))

$(VENV)/.demo: pyproject.toml $(CONSTRAINTS) | $(PY)
	$(INSTALL) -e .
	@touch $@

$(VENV)/.test: pyproject.toml $(CONSTRAINTS) | $(PY)
	$(INSTALL) -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv build dist
