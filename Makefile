# Everything runs in .venv, which is made when it is first needed.
# PYTHON=... chooses the interpreter (3.11 or newer) that makes it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip --disable-pip-version-check install -q -c constraints.txt -e
# More for JupyterLab: make lab LAB_ARGS="--no-browser --port=9000"
LAB_ARGS ?=
# What was installed last; as new as pyproject.toml and constraints.txt, nothing is to be done.
BASE := $(VENV)/installed-base
ALL := $(VENV)/installed-all
GPU := $(VENV)/installed-gpu

.DEFAULT_GOAL := help
.PHONY: help setup demo start lab lessons check test test-all test-gpu bench clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(ALL) ## make .venv with all that lessons and tests need

demo: $(BASE) ## grade a solved notebook and a wrong one (first time: a minute or two)
	@$(BIN)/python -m autograder.demo

start: $(BASE) ## copy the lessons to my_lessons/; what is there is never overwritten
	@$(BIN)/python -m lessons.student_copy

# The root is the course, or JupyterLab would not serve the pictures in lessons/images.
lab: $(ALL) ## open my_lessons/ in JupyterLab
	@$(BIN)/python -m lessons.student_copy --quiet
	$(BIN)/jupyter lab --notebook-dir=. --LabApp.default_url=/lab/tree/my_lessons $(LAB_ARGS)

lessons: $(BASE) ## build the notebooks from solutions/NN_name.py
	@$(BIN)/python -m lessons.build

check: $(ALL) ## are the notebooks built, is the code clean?
	$(BIN)/python -m lessons.build --check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Browser tests come last and one at a time: each starts a server and a browser of its own.
test: $(ALL) ## every test that is not slow and that this machine can run (10 to 15 minutes)
	$(BIN)/python -m pytest -n 2 -m "not slow and not browser" -rs
	$(BIN)/python -m pytest -m "not slow and browser" -rs

test-all: $(ALL) ## every test there is
	$(BIN)/python -m pytest -n 2 -m "not browser" -rs
	$(BIN)/python -m pytest -m browser -rs

test-gpu: $(GPU) ## the tests that need an NVIDIA GPU
	$(BIN)/python -m pytest -m gpu -rs

bench: $(GPU) ## time our kernels beside their peers and record it
	$(BIN)/python -m benchmarks run

clean: ## delete caches and builds; .venv and my_lessons/ stay
	rm -rf build dist .cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -not -path "./$(VENV)/*" -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; choose one with make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make a venv; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(BASE): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing the grader into $(VENV), once ..."
	@$(INSTALL) .
	@touch $@

$(ALL): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing JupyterLab and the tests' tools into $(VENV), once: a minute or two ..."
	@$(INSTALL) '.[notebooks,dev]'
	@touch $(BASE) $@

$(GPU): pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing CuPy and the CUDA toolkit into $(VENV), once: some minutes ..."
	@$(INSTALL) '.[notebooks,dev,gpu]'
	@touch $(BASE) $(ALL) $@
