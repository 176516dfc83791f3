# SPDX-License-Identifier: Apache-2.0
# Everything a person does with a checkout. The environment in .venv is made on first need and again when
# pyproject.toml or constraints.txt change. `make test-gpu PYTHON=python3` uses an interpreter that has it all already.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# tests start hundreds of processes: without bytecode, each of them would compile the package again
export PYTHONDONTWRITEBYTECODE :=

ifeq ($(origin PYTHON),undefined)
PYTHON := .venv/bin/python
ENVIRONMENT := .venv/.installed
endif
# the interpreter that makes .venv
BASE_PYTHON ?= $(firstword $(shell for p in python3 python3.11 python3.12 python3.13; do \
	"$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo "$$p"; done; true))

TESTS ?=
# how many processes run the tests; each takes a core and a gigabyte
WORKERS ?= 2
PYTEST := $(PYTHON) -m pytest $(TESTS)
SIDE_BY_SIDE := -n $(WORKERS) --dist loadfile
# those of the browser come last, in processes of their own: Playwright keeps the event loop of its process
ALL_TESTS := status=0; $(PYTEST) --ignore=tests/browser $(SIDE_BY_SIDE) || status=1; \
	$(PYTEST) tests/browser $(SIDE_BY_SIDE) || status=1; exit $$status
PORT ?= 8888
SLOW_SAMPLE ?= 1
SEED ?= 0

.venv/.installed: pyproject.toml constraints.txt
	@test -n "$(BASE_PYTHON)" || { echo "make: no Python from 3.11 to 3.13 found; set BASE_PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x .venv/bin/python || "$(BASE_PYTHON)" -m venv .venv || { echo "make: install Python's venv module (Debian: python3-venv)" >&2; exit 1; }
	@echo "Making the environment in .venv; the first time this takes some minutes"
	@.venv/bin/python -m pip install -q -c constraints.txt -e '.[dev,cuda]'
	@touch $@

.PHONY: env widgets hello smoke test test-slow test-gpu bench lint ruff types imports format lab clean help

env: $(ENVIRONMENT)  ## make the environment in .venv

widgets: $(ENVIRONMENT)  ## build the panels from widgets/ into tilekit/static/
	@$(PYTHON) widgets/bundles.py

hello: $(ENVIRONMENT)  ## run notebooks/01_hello.ipynb in a kernel; print its results and where the HTML lies
	@.ci/system-packages g++
	@$(PYTHON) notebooks/execute.py notebooks/01_hello.ipynb --html build/hello.html

smoke: $(ENVIRONMENT)  ## a tuned matmul in the evaluator, in the CPU simulator, and on a GPU if one is here
	@.ci/system-packages g++
	@$(PYTHON) -m pytest -q -m 'not slow' tests/kernels/matmul/test_matmul_v2.py

test: $(ENVIRONMENT)  ## smoke, then default, nvcc and browser tests (one file: make test TESTS=tests/ir/test_x.py)
	@$(if $(TESTS),,$(MAKE) smoke)
	@.ci/system-packages g++ chromium
	@$(if $(TESTS),$(PYTEST),$(ALL_TESTS))

test-slow: $(ENVIRONMENT)  ## slow tests (a tenth of them: SLOW_SAMPLE=0.1 SEED=7)
	@.ci/system-packages g++ chromium
	@$(PYTEST) -m 'slow and not gpu' $(if $(TESTS),,$(SIDE_BY_SIDE)) --slow-sample=$(SLOW_SAMPLE) --slow-seed=$(SEED)

test-gpu: $(ENVIRONMENT)  ## tests on an NVIDIA GPU (with an interpreter of yours: PYTHON=python3)
	@TILEKIT_REQUIRE=gpu $(PYTEST) -m gpu

bench: $(ENVIRONMENT)  ## measure the budgets, and where there is a GPU our kernels beside their peers
	@$(PYTHON) -m benchmarks

lint: ruff types imports  ## what CI checks without running: ruff, pyright, import floors

ruff: $(ENVIRONMENT)
	@$(PYTHON) -m ruff check -q .
	@$(PYTHON) -m ruff format -q --check .

types: $(ENVIRONMENT)
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(PYTHON) -m pyright --pythonpath "$$($(PYTHON) -c 'import sys; print(sys.executable)')"

imports: $(ENVIRONMENT)
	@$(PYTHON) -c 'from importlinter.cli import lint_imports_command; lint_imports_command(["--no-cache", "--no-logo"])'

format: $(ENVIRONMENT)  ## reformat, and mend what ruff can mend
	@$(PYTHON) -m ruff check -q --fix .
	@$(PYTHON) -m ruff format -q .

lab: $(ENVIRONMENT)  ## open JupyterLab on the notebooks (another port: PORT=8890)
	@.ci/system-packages g++
	@browser=; root=; \
	if [ -z "$${DISPLAY:-}$${WAYLAND_DISPLAY:-}" ]; then \
	  browser=--no-browser; \
	  echo "No display here. On your own machine run this, then open the 127.0.0.1 address that follows:"; \
	  echo "    ssh -N -L $(PORT):127.0.0.1:$(PORT) $$(id -un)@$$(hostname)"; \
	fi; \
	if [ "$$(id -u)" = 0 ]; then root=--allow-root; fi; \
	exec $(PYTHON) -m jupyter lab $$browser $$root --ip=127.0.0.1 --port=$(PORT) --ServerApp.port_retries=0 --ServerApp.root_dir="$(CURDIR)/notebooks"

clean:  ## remove the environment and everything built
	rm -rf .venv build dist tilekit/static widgets/node_modules widgets/build .pytest_cache .ruff_cache .hypothesis .import_linter_cache tests/browser/artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help:  ## this text
	@sed -nE 's/^([a-z-]+):[^#]*  ## (.*)/\1 \2/p' $(MAKEFILE_LIST) | while read -r target text; do printf '  make %-10s %s\n' "$$target" "$$text"; done
