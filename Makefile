# What a person or a machine does with this project, each from a fresh clone.
.DEFAULT_GOAL := help
PYTHON ?= python3
HOST ?= 127.0.0.1
PORT ?= 8000
BIN := .venv/bin
MANAGE := $(BIN)/python manage.py

.PHONY: help start test bench lint types contracts migrations lock system-packages venv venv-dev

help: ## List the targets.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

start: venv ## Install what is missing, then run web and worker on HOST:PORT until Ctrl-C.
	@exec $(MANAGE) serve --host "$(HOST)" --port "$(PORT)"

test: system-packages venv-dev lint types contracts migrations ## Install what the tests need, then run every check.
	@$(BIN)/python -m pytest -n 2 --dist loadgroup

bench: venv ## Measure the figures of docs/performance.md, each beside its target.
	@$(MANAGE) prepare --no-static --verbosity 0
	@$(MANAGE) bench

lint: venv-dev ## Style, dependencies, YAML, Dockerfile, shell scripts.
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/deptry .
	@$(BIN)/yamllint --strict .
	@$(BIN)/hadolint --failure-threshold info Dockerfile
	@$(BIN)/shellcheck .ci/run .ci/install-python-packages .ci/install-system-packages

types: venv-dev ## mypy.
	@$(BIN)/mypy manage.py gunicorn.conf.py planner catalog frontend tests

contracts: venv-dev ## Who may import whom.
	@$(BIN)/lint-imports --no-logo

# 0010 adds a column with a default in the database and 0012 one that may be empty, which PostgreSQL does in place; SQLite makes the
# table anew, and that the linter takes for columns that may not be.
migrations: venv-dev ## Models and migrations agree.
	@$(MANAGE) makemigrations --check --dry-run
	@EXTRA_APPS=django_migration_linter LOG_LEVEL=WARNING $(MANAGE) lintmigrations --no-cache --quiet ok ignore --include-apps planner catalog --ignore-name 0001_initial 0010_organization_tier 0012_quote_links

lock: venv-dev ## Resolve requirements*.in into the hashed lock files.
	@for name in requirements requirements-dev; do \
		$(BIN)/uv pip compile --quiet --generate-hashes --python-version 3.11 --no-emit-index-url $$name.in -o $$name.txt; \
	done

# A copy of the lock inside the environment says what is installed there: nothing is installed while they are the same.
venv:
	@cmp -s requirements.txt .venv/lock.txt || \
		{ .ci/install-python-packages "$(PYTHON)" requirements.txt && cp requirements.txt .venv/lock.txt; }

# The development lock holds the run-time lock's packages too.
venv-dev:
	@cmp -s requirements-dev.txt .venv/lock-dev.txt || \
		{ .ci/install-python-packages "$(PYTHON)" requirements-dev.txt && \
		cp requirements.txt .venv/lock.txt && cp requirements-dev.txt .venv/lock-dev.txt; }

system-packages:
	@.ci/install-system-packages
