# The one door to the project. `make` alone says what there is.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
COMPILED := .cache/compiled
OLDEST_PYSPARK := 4.2.0
OLDEST := .cache/pyspark-4.2
BUILD ?= compiled
WORKERS ?= 4
TESTS ?=
ARGS ?=

# Tests start hundreds of processes: where Python is told to keep no compiled files, each would compile everything anew.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-pyspark-4.2 conformance torture check format bench wheels compiled docs clean

help: ## list the targets
	@grep -hE '^[a-z0-9.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9.-]+):[^#]*## /  make \1	/' | expand -t 26

setup: $(READY) ## make .venv and install everything into it; quick when nothing changed

$(READY): pyproject.toml constraints.txt scripts/setup.sh
	@sh scripts/setup.sh $(VENV)
	@touch $@

demo: setup ## see it work: a broker, a group of consumers, a job on Spark (which needs Java 17)
	@$(BIN)/cordwood demo $(ARGS)

test: setup ## run the tests; TESTS=tests/wire runs some, WORKERS=8 uses more cores
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(TESTS) $(ARGS)

test-pyspark-4.2: $(OLDEST)/.ready ## run the tests of Spark with the oldest PySpark that is supported
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist loadgroup $(or $(TESTS),tests/spark) $(ARGS)

$(OLDEST)/.ready: $(READY)
	$(VENV)/bin/python -m venv $(OLDEST)
	sed 's/^pyspark==.*/pyspark==$(OLDEST_PYSPARK)/' constraints.txt > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/python -m pip install --quiet --constraint $(OLDEST)/constraints.txt --editable '.[dev]'
	@touch $@

conformance: setup ## run suites that authors of clients wrote; ARGS="--against kafka", ARGS="--only franz-go"
	$(BIN)/python -m conformance $(ARGS)

torture: setup ## minutes of faults on a real cluster, then the checker; ARGS="--minutes 5 --seed 7"
	$(BIN)/python tests/cluster/torture.py $(ARGS)

check: setup ## formatting, lint, types, the direction of imports, spelling
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell

format: setup ## format the code
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(if $(filter pure,$(BUILD)),setup,compiled) ## measure beside Apache Kafka; ARGS=--quick takes minutes; BUILD=pure
	$(if $(filter pure,$(BUILD)),$(BIN),$(COMPILED)/bin)/python -m benchmarks $(ARGS)

wheels: compiled ## what is released, into dist/: a wheel compiled for this platform, and one for all others
	$(COMPILED)/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(FORGET_OBJECTS)
	CORDWOOD_COMPILE=$(SECOND_BUILD) $(COMPILED)/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

compiled: $(COMPILED)/.ready ## the compiled build, in an environment of its own; make test BIN=.cache/compiled/bin uses it

# Compiled twice with gcc, which counts what runs in between (decision 011); once elsewhere.
IS_TRAINED := $(filter Linux,$(shell uname))
SECOND_BUILD := $(if $(IS_TRAINED),counted,1)
FORGET_OBJECTS := find build \( -name '*.o' -o -name '*.so' \) -delete

$(COMPILED)/.ready: $(READY) setup.py scripts/check_compiled.py scripts/train_compiled.py $(wildcard native/*) $(shell find src -name '*.py')
	$(VENV)/bin/python -m venv $(COMPILED)
	$(COMPILED)/bin/python -m pip install --quiet --constraint constraints.txt 'setuptools>=77' mypy
	rm -rf build
	CORDWOOD_COMPILE=$(if $(IS_TRAINED),count,1) $(COMPILED)/bin/python -m pip install --quiet --constraint constraints.txt \
		--no-build-isolation '.[dev]'
ifneq ($(IS_TRAINED),)
	cd .cache && compiled/bin/python ../scripts/train_compiled.py
	$(FORGET_OBJECTS)
	CORDWOOD_COMPILE=counted $(COMPILED)/bin/python -m pip install --quiet --no-deps --force-reinstall --no-build-isolation .
endif
	cd .cache && compiled/bin/python ../scripts/check_compiled.py
	@touch $@

docs: setup ## write the pages of docs/ that are generated from the code
	$(BIN)/python scripts/write_docs.py

clean: ## remove everything that the targets above have made
	rm -rf $(VENV) build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf src/*.egg-info
