# `make help` lists the commands. Each makes its own virtual environment first if there is none.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What building the book needs; what everything needs.
BOOK := $(VENV)/.book
READY := $(VENV)/.ready
# Without the options of tests/all.args a plain `pytest tests/...` runs in one process, without notebooks.
PYTEST := $(BIN)/python -m pytest @tests/all.args
# What `make check` tests: the core, and one chapter. To start a cluster, and to compare fits with
# relations and without over many draws, takes too long.
CORE := tests/network tests/inference tests/mixture tests/test_numerics.py tests/test_layering.py \
    cgmm/numerics.py cgmm/network cgmm/inference cgmm/mixture book/05_where_relations_come_from.ipynb \
    --ignore=tests/mixture/test_cluster.py --ignore=tests/mixture/test_safe_weights.py
# Without notebooks, browser and what only starts other processes.
UNIT := tests cgmm book/reruns --ignore=tests/book --ignore=tests/tools --ignore=tests/assignments \
    --ignore=tests/test_typing.py

RESOLUTION ?= lowest-direct

# Pages of the book that are made from tables and docstrings.
PAGES = for page in equations errata comparisons api; do $(BIN)/python tools/$$page.py || exit 1; done

# The built pages, for what is made of them, and what they are built from.
SITE := _build/html/.built
SOURCES := _config.yml _toc.yml $(shell find book cgmm -type f -not -name '*.pyc')

.DEFAULT_GOAL := book
.PHONY: help book lab notebooks reruns test chapters check lint test-all editions bench fuzz mutants \
    versions package lock

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile

book: $(if $(SPHINX),_build/sphinx$(SPHINX)/.ready,$(BOOK)) ## build the book; a warning is an error (SPHINX=9: without jupyter-book)
ifdef SPHINX
	_build/sphinx$(SPHINX)/bin/sphinx-build -c book/_sphinx -d _build/doctrees$(SPHINX) -E -W -n \
	    --keep-going . _build/html$(SPHINX)
else
	@$(PAGES)
	$(BIN)/jupyter-book build . --all -W -n --keep-going
	@touch $(SITE)
	@echo
	@echo "The book is ready. Open this file in a browser:"
	@echo "    $(CURDIR)/_build/html/index.html"
endif

lab: $(READY) ## open the chapters live in JupyterLab (LAB=--no-browser: its options)
	-$(BIN)/jupyter trust book/*.ipynb
	JUPYTER_CONFIG_PATH="$(CURDIR)/tools/lab" $(BIN)/jupyter lab --notebook-dir=book $(LAB)

notebooks: $(READY) ## run and clean the chapters, write what is made from tables and assignments
	$(BIN)/python tools/notebooks.py
	$(BIN)/python tools/howto.py
	@$(PAGES)
	$(BIN)/python assignments/course.py release --out book/_static/assignments

reruns: $(READY) ## run the papers' experiments that are not stored yet (RERUNS=--quick: a small part)
	cd book && "$(CURDIR)/$(BIN)/python" -m reruns $(RERUNS)

test: $(READY) ## the package and its doctests, the course, the pages in a browser
	$(PYTEST) -m "not slow" tests cgmm book/reruns assignments/grader/tests

chapters: $(READY) ## each cell of each notebook against what it shows
	$(PYTEST) -m "not slow" --ignore=book/reruns book

check: lint ## while editing: `make lint` (style, types, wording), the core's tests, one chapter
	$(PYTEST) -m "not slow" $(CORE)

# Style, types and wording.
lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/wording.py

test-all: $(READY) ## make test, make chapters, and what takes long and has a quicker twin there
	$(PYTEST)

$(SITE): $(SOURCES)
	$(MAKE) book

editions: $(READY) $(SITE) ## PDF and EPUB of the book, in its pages' menu, and _build/slides of each chapter
	$(BIN)/python tools/pdf.py
	$(BIN)/python tools/epub.py
	$(BIN)/python tools/slides.py

bench: $(READY) ## run the measurements in benchmarks/
	set -e; for script in benchmarks/*.py; do $(BIN)/python "$$script"; done

fuzz: $(READY) ## all laws on new examples, ten thousand random problems
	CGMM_EXPLORE=1 $(BIN)/python -m pytest $(UNIT)

mutants: $(READY) ## find branches that no test takes, and mistakes that none notices (MUTANTS=mixture)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(UNIT)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=99
	$(BIN)/python -m tools.mutants --jobs 2 $(MUTANTS)

versions: $(READY) ## quick tests with the lowest versions allowed (RESOLUTION=highest: the newest)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python _build/versions
	$(BIN)/uv pip compile --quiet --python _build/versions --resolution $(RESOLUTION) --upgrade \
	    --extra tests pyproject.toml -o _build/versions.txt
	$(BIN)/uv pip install --quiet --python _build/versions -r _build/versions.txt -e .
	_build/versions/bin/python -m pytest @tests/all.args -m "not slow" $(UNIT)

package: $(READY) ## build wheel and sdist as a release does, test them in an empty environment
	$(BIN)/python tools/package.py
	mkdir -p _build
	git archive --output _build/cgmm-teachers.zip --prefix cgmm-teachers/ HEAD assignments LICENSE

lock: $(READY) ## pin what pyproject.toml asks for in requirements-dev.lock (LOCK=--upgrade: newest)
	$(BIN)/uv pip compile --quiet pyproject.toml --extra tests --universal --python-version 3.11 \
	    --annotation-style line --custom-compile-command "make lock" -o requirements-dev.lock $(LOCK)

# Made anew whenever the pinned versions or the project's own metadata change.
$(READY): $(BOOK)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -r requirements-dev.lock -e .
	@touch $@

$(BOOK): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "cgmm needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "No virtual environment could be made (Debian: apt install python3-venv)."; exit 1; }
	$(BIN)/python -m pip install --disable-pip-version-check --quiet -c requirements-dev.lock -e ".[book]"
	@touch $@

_build/sphinx%/.ready: book/_sphinx/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --disable-pip-version-check --quiet "sphinx==$*.*" -r $< -e .
	@touch $@
