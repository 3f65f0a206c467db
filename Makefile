# The course's commands. `make` alone lists them. Nothing here touches a file that a learner wrote.

# The Python that makes the environment; `make lab PYTHON=python3.12` names another. TORCH=cpu or TORCH=cuda names the build of PyTorch.
ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell command -v python3 || command -v python3.12 || command -v python3.11 || echo python3)
else
ASKED := --asked
endif

VENV := .venv/bin
LAB_ARGS ?=
TEST_ARGS ?=
NBVAL_ARGS ?=
LESSONS ?=
BUNDLE_ARGS ?=
SOLVED ?=
WORKERS ?= 2
SINCE ?= main
LIST ?=
ALL ?=
PART ?= all

.DEFAULT_GOAL := help
.PHONY: help lab test sweep quick env dev build nbval nbval-gpu bundle site tab pyodide tab-test lint pins package commands doctor update clean

help: ## list these commands
	@$(MAKE) -s --no-print-directory -f $(firstword $(MAKEFILE_LIST)) help_lines | if [ -n "$$COURSE_LANG" ]; then "$(PYTHON)" tools/translation.py; else cat; fi

.PHONY: help_lines
help_lines:
	@echo "make COMMAND, where COMMAND is one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "PYTHON=python3.12 names the Python, TORCH=cpu or cuda PyTorch's build,"
	@echo "LAB_ARGS=\"--no-browser --port 8899\" goes to JupyterLab."
	@echo "TEST_ARGS=\"-k doctor\" goes to pytest, WORKERS=4 says how many tests run at a time;"
	@echo "LESSONS=\"03 04\" and NBVAL_ARGS=\"--junitxml=nbval.xml\" are for nbval;"
	@echo "BUNDLE_ARGS=\"--python 3.12\" says which Python that machine has."

# Python 2 cannot read bootstrap.py, and /usr/bin/false says nothing: so this first
BOOTSTRAP = @"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info[0] < 3)' 2>/dev/null || { echo "course: $(PYTHON) is not here, or is no Python 3. Install Python 3.11 or newer (Debian, Ubuntu: apt install python3 python3-venv), or name one: make lab PYTHON=/path/to/python3" >&2; exit 1; }; \
	"$(PYTHON)" tools/bootstrap.py $(ASKED)

env: ## make or update the environment in .venv
	$(BOOTSTRAP)

dev: ## authors: the same with the tools of tests and authors
	$(BOOTSTRAP) --dev

lab: env ## environment, then JupyterLab on lesson 00
	@$(VENV)/course lab $(LAB_ARGS)

test: dev ## environment, then every test that this machine can run
	@echo "course: running the tests. What this machine cannot run (GPU tests without a GPU, the browser test without Chromium)"
	@echo "course: is left out; the lines marked SKIPPED at the end say what and why."
	@$(VENV)/python -m pytest -rs -p no:nbval -n $(WORKERS) --dist worksteal tests $(TEST_ARGS)

sweep: dev ## authors: the cases that `make test` leaves out; PART=3/10
	@$(VENV)/python -m pytest -rs -p no:nbval -n $(WORKERS) --dist worksteal --sweep=$(PART) tests $(TEST_ARGS)

quick: dev ## authors: a few tests of what differs from main, or SINCE=COMMIT
	@$(VENV)/python -m course_lib.authoring.quick --since $(SINCE) -- -p no:nbval -n $(WORKERS) --dist worksteal $(TEST_ARGS)

doctor: env ## check machine and environment, with a remedy for each finding
	@$(VENV)/course doctor

update: env ## bring the course up to date; your own work stays as it is
	@$(VENV)/course update

build: dev ## authors: build what your changes make due; LIST=1 only says it
	@$(VENV)/python -m course_lib.authoring.build --since $(SINCE) $(if $(LIST),--list) $(if $(ALL),--all)

NBVAL = @$(VENV)/python -m course_lib.authoring.nbval --workers $(WORKERS) $(if $(SOLVED),$(if $(filter both,$(SOLVED)),--both,--solved)) $(LESSONS)

nbval: dev ## instructors: run and prove every lesson on the CPU; SOLVED=1, both
	$(NBVAL) -- $(NBVAL_ARGS)

nbval-gpu: dev ## instructors: the same on a GPU, or it stops
	$(NBVAL) --gpu -- $(NBVAL_ARGS)

bundle: dev ## instructors: collect the wheels for a GPU machine without network
	@$(VENV)/python tools/bundle.py collect $(BUNDLE_ARGS)

site: dev ## authors: lessons and guides as a web site; PYODIDE=FOLDER
	@$(VENV)/python -m course_lib.authoring.site $(if $(PYODIDE),--pyodide "$(PYODIDE)")

tab: dev ## authors: the lessons, running in a browser tab; PYODIDE=FOLDER
	@$(VENV)/python -m course_lib.authoring.tab "$(or $(PYODIDE),build/pyodide)" build/tab

pyodide: dev ## authors: fetch the Pyodide with which a tab is tried
	@$(VENV)/python -m course_lib.authoring.pyodide build/pyodide

tab-test: pyodide ## authors: try lessons and checks in a browser tab
	@COURSE_PYODIDE=build/pyodide $(VENV)/python -m pytest -rs -n $(WORKERS) --dist loadscope tests/tab/test_checks.py tests/tab/test_lessons.py $(TEST_ARGS)

lint: dev ## authors: ruff's checks, its formatting, and types
	@$(VENV)/python -m ruff check .
	@$(VENV)/python -m ruff format --check .
	@$(VENV)/python -m basedpyright

pins: dev ## authors: prove that the pins fit every Python and processor
	@$(VENV)/python tools/check_pins.py
	@$(VENV)/python tools/proven.py record pins

package: dev ## authors: build the wheel, and try it as a learner elsewhere
	@$(VENV)/python tools/try_package.py
	@$(VENV)/python tools/proven.py record package

commands: dev ## authors: type what the guides tell, in an empty account
	@$(VENV)/python tools/try_commands.py
	@$(VENV)/python tools/proven.py record commands

clean: ## remove .venv and caches; exercises, notebooks, progress stay
	rm -rf .venv .venv.lock build norm_kernels_course.egg-info .pytest_cache .ruff_cache .hypothesis
	find course_lib tools $(wildcard tests) -name __pycache__ -type d -prune -exec rm -rf {} +
