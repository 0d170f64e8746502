# Plimsoll: `make run` starts it, `make test` checks all of it. Needs Python 3.11 or newer, nothing else.
# Durations in the help are for two cores with nothing else to do.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
INSTALL := VIRTUAL_ENV=$(CURDIR)/$(VENV) $(UV) pip install --quiet --require-hashes
COMPILE := $(UV) pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11

.DEFAULT_GOAL := help
.PHONY: help run demo setup check test coverage lint format lock clean
.DELETE_ON_ERROR:

# The quick unit tests: no database service, no browser, no process of Plimsoll, no recorded sessions, no generated cases.
SLOW := test_api_cases test_backup test_cli test_damaged_database test_development_server test_loading test_supervisor test_ways_in
UNIT := tests/compaction tests/test_documentation.py tests/test_import_rules.py $(filter-out $(SLOW:%=tests/dashboard/%.py), $(wildcard tests/dashboard/test_*.py))

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sort | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16
	@echo
	@echo "  PLIMSOLL_PORT and PLIMSOLL_DATA choose the port (8000) and the data folder."

run: $(VENV)/.runtime ## install what is missing and start Plimsoll (http://127.0.0.1:8000)
	@PYTHONDONTWRITEBYTECODE= exec $(BIN)/plimsoll up

# Its own data folder, and nothing of this machine's sessions.
demo: $(VENV)/.runtime ## start Plimsoll with sample sessions, apart from yours
	@PYTHONDONTWRITEBYTECODE= PLIMSOLL_FOLLOW=off PLIMSOLL_DATA="$${PLIMSOLL_DATA:-$${XDG_DATA_HOME:-$$HOME/.local/share}/plimsoll/demo}" exec $(BIN)/plimsoll up --demo

setup: $(VENV)/.dev ## install everything for development into .venv

check: lint ## lint, types and quick unit tests: about 80 seconds
	@exec $(BIN)/python -m pytest -q -n 2 -m "not recorded_data" $(UNIT)

test: $(VENV)/.dev ## everything, with PostgreSQL, Redis and a browser: about 16 minutes
	@exec $(BIN)/python -m tests.run

coverage: $(VENV)/.dev ## run the suite in one process and list the lines it does not reach
	@exec $(BIN)/python -m pytest -q --cov --cov-report=term

lint: $(VENV)/.dev ## check format, style and types: about 25 seconds
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(VENV)/.dev ## format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lock: $(UV) ## update the lock files from pyproject.toml (UPGRADE=1: newest versions)
	$(COMPILE) $(if $(UPGRADE),--upgrade) pyproject.toml --group build -o requirements.lock
	$(COMPILE) $(if $(UPGRADE),--upgrade) pyproject.toml --group build --group dev -c requirements.lock -o tests/requirements.lock

clean: ## remove .venv, caches and build output
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage tests/browser/node_modules tests/dashboard/proxy/typescript/node_modules tests/dashboard/ingest/otlp/javascript/node_modules
	find dashboard tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Plimsoll needs Python 3.11 or newer; name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing; on Debian: apt install python3-venv"; rm -rf $(VENV); exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check 'uv>=0.9,<1'

# Two lock files, so that running needs neither browser driver nor type checker. The project itself comes last, editable.
# Only development compiles everything ahead: tests start many processes, while one `make run` keeps what it imports.
$(VENV)/.runtime: requirements.lock pyproject.toml | $(UV)
	@echo "Installing what Plimsoll needs ..."
	@$(INSTALL) -r requirements.lock
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: tests/requirements.lock $(VENV)/.runtime | $(UV)
	@echo "Installing what its tests need ..."
	@$(INSTALL) --compile-bytecode -r tests/requirements.lock
	@touch $@
