# One command each; every one makes its own virtual environment first if there is none.
#
#   make book        build the book, warnings are errors
#   make test        every test: unit, doctest, notebook cells, browser
#   make lab         open the chapters live in JupyterLab (make lab LAB=--no-browser: its options)
#   make notebooks   run and clean the chapters in place, write the pages made from tables
#   make bench       run the measurements in benchmarks/
#   make replicate   rerun the experiments of the papers (make replicate REPLICATE="--quick")
#   make lint        ruff
#   make clean       remove what was built (not the environment)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := book
.PHONY: book test lab notebooks bench replicate lint format clean

book: $(READY)
	$(BIN)/jupyter-book build . --all -W -n --keep-going
	@echo
	@echo "The book is ready. Open this file in a browser:"
	@echo "    $(CURDIR)/_build/html/index.html"

test: $(READY)
	$(BIN)/python -m pytest

lab: $(READY)
	-$(BIN)/jupyter trust book/*.ipynb
	$(BIN)/jupyter lab --notebook-dir=book $(LAB)

notebooks: $(READY)
	$(BIN)/python book/_tools/notebooks.py
	$(BIN)/python book/_tools/equations.py
	$(BIN)/python book/_tools/errata.py

bench: $(READY)
	set -e; for script in benchmarks/*.py; do $(BIN)/python "$$script"; done

replicate: $(READY)
	$(BIN)/python -m cgmm.replicate --jobs 2 $(REPLICATE)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf _build build dist .pytest_cache .ruff_cache .hypothesis

# Made anew whenever the pinned versions or the project's own metadata change.
$(READY): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "cgmm needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "No virtual environment could be made (Debian: apt install python3-venv)."; exit 1; }
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r requirements.txt -e .
	@touch $@
