# One command each; every one makes its own virtual environment first if there is none.
#
#   make book        build the book, warnings are errors
#   make test        every test: unit, doctest, notebook cells, browser
#   make lab         open the chapters live in JupyterLab (make lab LAB=--no-browser: its options)
#   make notebooks   run and clean the chapters in place, write the pages made from tables
#   make bench       run the measurements in benchmarks/
#   make replicate   rerun the experiments of the papers (make replicate REPLICATE="--quick")
#   make assignments make the student versions of the graded assignments
#   make grade       grade a folder of submissions (make grade SUBMISSIONS=folder)
#   make fuzz        ten thousand random problems, then data of extreme size and scale
#   make mutants     are the tests good enough? (make mutants MUTANTS="mixture --generated 50")
#   make coverage    which branches of the package no test takes
#   make package     build the wheel and the sdist, and test the wheel in an empty environment
#   make lint        ruff, and the types
#   make clean       remove what was built (not the environment)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := book
.PHONY: book test lab notebooks bench replicate assignments grade fuzz mutants coverage package \
    lint format clean

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
	$(BIN)/python tools/notebooks.py
	$(BIN)/python tools/equations.py
	$(BIN)/python tools/errata.py
	$(BIN)/python tools/comparisons.py
	$(BIN)/python tools/api.py

bench: $(READY)
	set -e; for script in benchmarks/*.py; do $(BIN)/python "$$script"; done

replicate: $(READY)
	$(BIN)/python -m cgmm.replicate --jobs 2 $(REPLICATE)

assignments: $(READY)
	$(BIN)/python assignments/course.py release --out book/_static/assignments

grade: $(READY)
	$(BIN)/python assignments/course.py grade $(SUBMISSIONS)

fuzz: $(READY)
	$(BIN)/python -m tools.fuzz $(FUZZ)
	CGMM_SLOW=1 $(BIN)/python -m pytest tests/test_extremes.py -n0

mutants: $(READY)
	$(BIN)/python -m tools.mutants --jobs 2 $(MUTANTS)

# Without notebooks, browser and what only starts other processes
coverage: $(READY)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests cgmm --ignore=tests/book --ignore=tests/tools \
	    --ignore=tests/assignments --ignore=tests/test_typing.py
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=99

package: $(READY)
	$(BIN)/python tools/package.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

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
