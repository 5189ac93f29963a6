# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed

.DEFAULT_GOAL := help
.PHONY: help demo test slow lint bench docs clean

help:  ## Show what can be made
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

# Everything a developer needs, in one environment; made again when pyproject.toml changes.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

demo: $(STAMP)  ## Run the main job on the embedded texts
	$(BIN)/seqloom demo

test: $(STAMP)  ## Run the tests
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal --quiet

slow: $(STAMP)  ## Run the tests that train or repeat long experiments
	$(BIN)/python -m pytest -m slow

lint: $(STAMP)  ## Check format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(STAMP)  ## Measure speed and memory; prints tables
	$(BIN)/python benchmarks/text_and_data.py
	$(BIN)/python benchmarks/training_loop.py
	$(BIN)/python benchmarks/recurrent.py
	$(BIN)/python benchmarks/ngram.py --repeats 1 --parts estimate,scaling,query,small,start

docs: $(STAMP)  ## Build the documentation into site/
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	$(BIN)/mkdocs build --strict

clean:  ## Remove everything made here
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
