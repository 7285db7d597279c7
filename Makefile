# The Relay workbook. `make` alone lists what there is to do.
.DEFAULT_GOAL := help
.PHONY: help hub preflight wheelhouse lab verify quiz progress update check-env builds clean-cache clean book setup test test-browser slides release grade notebooks format bench update-check lock
.ONESHELL:
SHELL := /bin/sh
.SHELLFLAGS := -eu -c

# Everything the tools write stays inside this folder.
STATE := $(CURDIR)/.state
export JUPYTER_CONFIG_DIR := $(STATE)/jupyter/config
export JUPYTER_CONFIG_PATH := $(CURDIR)/setup/jupyter
export JUPYTER_DATA_DIR := $(STATE)/jupyter/data
export JUPYTER_RUNTIME_DIR := $(STATE)/jupyter/runtime
export JUPYTERLAB_SETTINGS_DIR := $(STATE)/jupyter/settings
export JUPYTERLAB_WORKSPACES_DIR := $(STATE)/jupyter/workspaces
export JUPYTER_PREFER_ENV_PATH := 1
export JUPYTER_PLATFORM_DIRS := 1
export IPYTHONDIR := $(STATE)/ipython
export MPLCONFIGDIR := $(STATE)/matplotlib
export ORT_DISABLE_TELEMETRY := 1
export TEST_DATA_ROOT_PATH := $(STATE)/tvm_test_data
export HYPOTHESIS_STORAGE_DIRECTORY := $(STATE)/hypothesis
export RUFF_CACHE_DIR := $(STATE)/ruff
export MYPY_CACHE_DIR := $(STATE)/mypy
export PYTHONNOUSERSITE := 1
PYTHONPATH ?=
export PYTHONPATH
PY := "$(CURDIR)/.venv/bin/python"

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

setup:
	@./setup/setup.sh

lab: setup ## set up on first use, then open JupyterLab on the first lesson
	@$(if $(filter undefined,$(origin VARIANT)),,$(PY) -m helpers.variants)
	@exec $(PY) -m jupyterlab --ServerApp.root_dir="$(CURDIR)" --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb $(LABFLAGS)

verify: setup ## run a lab from a fresh kernel and print its public checks: make verify LAB=03
	@$(PY) -m helpers.verify $(LAB)

quiz: setup ## quiz questions in the terminal, those answered wrong first: make quiz [LESSON=03] [ORDER=lesson]
	@exec $(PY) -m helpers.revision $(LESSON) $(if $(ORDER),--order $(ORDER))

progress: setup ## which lessons and labs you have done: make progress [COURSE=three_hours]
	@$(PY) -m helpers.progress $(if $(COURSE),"$(COURSE)")

update: setup ## the newest workbook; what you wrote stays
	@$(PY) -m helpers.update

preflight: ## will the workbook run on this machine? Installs nothing: make preflight [WHEELHOUSE=folder]
	@exec ./setup/setup.sh --preflight

wheelhouse: setup ## all packages in one folder, for where there is no network: make wheelhouse OUT=folder [EXTRAS=1]
	@$(PY) -m helpers.wheelhouse "$(OUT)" $(if $(filter 1,$(EXTRAS)),--extras)

check-env: setup ## what is installed, which TVMs, which devices, what is wrong
	@$(PY) -m helpers.check_env

builds: ## for conda users: add the Relay build and the models to the active environment
	@python setup/install.py --builds-only

hub: setup ## for a classroom server: add JupyterHub to this installation (see docs/hub.md)
	@uv=$$(command -v uv || true); $(PY) setup/install.py --hub $${uv:+--uv "$$uv"}
	@echo "JupyterHub $$($(PY) -m jupyterhub --version) is in place."

clean-cache: ## remove compiled models kept on disk
	@rm -rf "$(STATE)/cache"

clean: ## remove everything that was installed or kept; sources and your notebooks stay
	@rm -rf "$(CURDIR)/.venv" "$(CURDIR)/.deps" "$(STATE)"

# --- for those who write the workbook: what follows is not in a class's copy ---

test: setup ## set up, then run every check
	@./tests/run_all "$(CURDIR)/.venv/bin/python"

test-browser: setup ## every page in Chromium (INSTALL_CHROMIUM=1 lets root install it)
	@$(PY) -m tools.browser

slides: setup ## slides of the lessons, for any browser, without a network: make slides [LESSON=03] [COURSE=three_hours]
	@$(PY) -m tools.slides $(LESSON) $(if $(COURSE),--course $(COURSE))

book: setup ## the site of the workbook, from the stored outputs: .state/book/_build/html
	@$(PY) -m tools.book

release: setup ## the copy of the workbook that a class receives: make release OUT=folder
	@$(PY) -m tools.release "$(OUT)"

grade: setup ## grade a class: make grade SUBMISSIONS=folder OUT=folder [SECRET=file] [ROSTER=file] [VARIANTS=1] [CLUSTER=tcp://...] [JOBS=4] [UNSAFE=1]
	@test -n "$(SUBMISSIONS)" -a -n "$(OUT)" || { echo "Say what to grade: make grade SUBMISSIONS=folder OUT=folder" >&2; exit 1; }
	@$(PY) -m helpers.grading "$(SUBMISSIONS)" "$(OUT)" $(if $(SECRET),--secret "$(SECRET)") $(if $(ROSTER),--roster "$(ROSTER)") $(if $(filter 1,$(VARIANTS)),--variants) $(if $(CLUSTER),--cluster "$(CLUSTER)") $(if $(JOBS),--jobs $(JOBS)) $(if $(filter 1,$(UNSAFE)),--unsafe)

notebooks: setup ## build notebooks/ and labs/ from their sources
	@$(PY) -m tools.build_notebooks $(PAGES)

format: setup ## format and lint the sources
	@$(PY) -m ruff format . && $(PY) -m ruff check --fix .

bench: setup ## the benchmarks behind the figures in bench/README.md
	@for script in bench/*.py; do $(PY) -m "bench.$$(basename "$$script" .py)"; done

update-check: setup ## which packages have newer versions, and what to do about each (minutes)
	@$(PY) -m tools.update_check

lock: ## resolve the .in files again into their locks (needs uv): make lock [UPGRADE=package]
	@for name in requirements browser book setup/hub/hub; do
		uv pip compile --universal --python-version 3.10 --generate-hashes --no-emit-index-url --no-header --quiet $(if $(UPGRADE),--upgrade-package "$(UPGRADE)") -o $$name.lock $$name.in
	done
