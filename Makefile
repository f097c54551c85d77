# `make help` lists the commands. Each makes its own virtual environment first if there is none.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What building the book needs; what everything needs.
BOOK := $(VENV)/.book
READY := $(VENV)/.ready
# Without the options of tests/all.args a plain `pytest tests/...` runs in one process, without notebooks.
PYTEST := $(BIN)/python -m pytest @tests/all.args
# What `make check` tests: the core, and one chapter. A cluster takes too long to start.
CORE := tests/network tests/inference tests/mixture tests/test_numerics.py tests/test_layering.py \
    cgmm/numerics.py cgmm/network cgmm/inference cgmm/mixture book/02_em.ipynb \
    --ignore=tests/mixture/test_partitions.py
# Without notebooks, browser and what only starts other processes.
UNIT := tests cgmm --ignore=tests/book --ignore=tests/tools --ignore=tests/assignments \
    --ignore=tests/test_typing.py

.DEFAULT_GOAL := book
.PHONY: help book check test test-all lint format lab notebooks slides pdf epub bench replicate assignments \
    grade fuzz mutants coverage package lock clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

book: $(BOOK) ## build the book; a warning is an error
	$(BIN)/jupyter-book build . --all -W -n --keep-going
	@echo
	@echo "The book is ready. Open this file in a browser:"
	@echo "    $(CURDIR)/_build/html/index.html"

test: $(READY) ## package, doctests, each cell of each notebook, the pages in a browser
	$(PYTEST) -m "not slow"

test-all: $(READY) ## the same, and the tests that take long and have a quicker twin
	$(PYTEST)

check: lint ## while editing: lint, types, the core's tests, one chapter
	$(PYTEST) -m "not slow" $(CORE)

lint: $(READY) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY) ## mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lab: $(READY) ## open the chapters live in JupyterLab (LAB=--no-browser: its options)
	-$(BIN)/jupyter trust book/*.ipynb
	JUPYTER_CONFIG_PATH=$(CURDIR)/tools/lab $(BIN)/jupyter lab --notebook-dir=book $(LAB)

notebooks: $(READY) ## run and clean the chapters in place, write the pages made from tables
	$(BIN)/python tools/notebooks.py
	$(BIN)/python tools/equations.py
	$(BIN)/python tools/errata.py
	$(BIN)/python tools/comparisons.py
	$(BIN)/python tools/api.py

slides: $(READY) ## slides for each chapter, HTML and PDF, in _build/slides (SLIDES=06_chunklet_em)
	$(BIN)/python tools/slides.py $(SLIDES)

pdf: $(READY) book ## the book as one PDF, _build/html/cgmm.pdf, and in the menu of each page
	$(BIN)/python tools/pdf.py

epub: $(READY) book ## the same as an EPUB for readers, _build/html/cgmm.epub
	$(BIN)/python tools/epub.py

bench: $(READY) ## run the measurements in benchmarks/
	set -e; for script in benchmarks/*.py; do $(BIN)/python "$$script"; done

replicate: $(READY) ## rerun the experiments of the papers (REPLICATE=--quick)
	$(BIN)/python -m cgmm.replicate --jobs 2 $(REPLICATE)

assignments: $(READY) ## write the student versions of the graded assignments
	$(BIN)/python assignments/course.py release --out book/_static/assignments

grade: $(READY) ## grade what students handed in (SUBMISSIONS=folder SEED=word)
	$(BIN)/python assignments/course.py grade "$(SUBMISSIONS)" $(if $(SEED),--seed "$(SEED)") $(GRADE)

fuzz: $(READY) ## ten thousand random problems, all laws on new examples, data of extreme size
	$(BIN)/python -m tools.fuzz $(FUZZ)
	CGMM_EXPLORE=1 $(BIN)/python -m pytest $(UNIT)
	CGMM_SLOW=1 $(BIN)/python -m pytest tests/test_extremes.py

mutants: $(READY) ## are the tests good enough? (MUTANTS="mixture --generated 50")
	$(BIN)/python -m tools.mutants --jobs 2 $(MUTANTS)

coverage: $(READY) ## name the branches of the package that no test takes
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(UNIT)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=99

package: $(READY) ## build wheel and sdist as a release does, test them in an empty environment
	$(BIN)/python tools/package.py

lock: $(READY) ## pin what pyproject.toml asks for in requirements.txt (LOCK=--upgrade: newest)
	$(BIN)/uv pip compile --quiet pyproject.toml --extra tests --universal --python-version 3.11 \
	    --annotation-style line --custom-compile-command "make lock" -o requirements.txt $(LOCK)

clean: ## remove what was built (not the environment)
	rm -rf _build build dist .pytest_cache .ruff_cache .hypothesis

# Made anew whenever the pinned versions or the project's own metadata change.
$(READY): $(BOOK)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r requirements.txt -e .
	@touch $@

$(BOOK): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "cgmm needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "No virtual environment could be made (Debian: apt install python3-venv)."; exit 1; }
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c requirements.txt -e ".[book]"
	@touch $@
