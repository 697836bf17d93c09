# make run    set up .venv, measure this machine with the smoke profile, write the report
# make test   the same set-up, then the tests (under 10 minutes on 2 cores)
# make help   the rest

VENV   ?= .venv
BIN    := $(VENV)/bin
SHELL  := /bin/bash
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
TORCH_CPU_INDEX := https://download.pytorch.org/whl/cpu
# Any verdict is a success of `make run`; only a crash, or a run that was cut short, is not.
VERDICTS := 0 3 4 5

.DEFAULT_GOAL := help
.PHONY: help run test test-all lint bench detect fuzz gpu-check clean

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.installed tool-fio  ## measure this machine with the smoke profile and write its report
	@$(BIN)/hwlottery run --profile smoke; code=$$?; \
	for verdict in $(VERDICTS); do [ $$code = $$verdict ] && exit 0; done; exit $$code

test: $(VENV)/.tested-with tool-fio tool-chromium  ## all tests but the slow ones, those that need root, and the lab
	@$(BIN)/python -m pytest -m "not slow and not root and not lab"

test-all: test lint  ## `make test`, then the slow tests, those that need root, and those on several hosts
	@$(BIN)/python -m pytest -m "slow or root or lab"

lint: $(VENV)/.tested-with  ## ruff, mypy strict, and the layers of the architecture
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

bench: $(VENV)/.tested-with tool-fio  ## the budgets, measured as ratios in one run
	@PYTHONPATH=.src $(BIN)/python -m bench

detect: $(VENV)/.tested-with  ## how often slow nodes, links and clusters are found: docs/pairs.md, docs/compare.md
	@PYTHONPATH=.src:tests $(BIN)/python tests/detect_pairs.py
	@PYTHONPATH=.src:tests $(BIN)/python tests/detect_runs.py

fuzz: $(VENV)/.tested-with  ## the property tests with many more examples
	@HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -m "not browser and not root and not lab" --timeout 3600 \
	  tests/test_verdict_law.py tests/test_evidence.py

# Needs torch, numpy, psutil, msgspec and nvidia-ml-py alone: the machine's own python3 serves where it has torch.
gpu-check:  ## what one GPU can be asked, in under 6 minutes, without the rest installed
	@python=python3; [ -x $(BIN)/python ] && python=$(BIN)/python; \
	PYTHONPATH=.src $$python -m hwlottery.probes.gpu_check

clean:  ## remove what make made; runs/ is kept
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

# --- set-up -----------------------------------------------------------------------------------------------------------

$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { echo "hwlottery needs Python 3.11 or newer; none found on PATH"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing: apt-get install python3-venv"; exit 2; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)

# PyPI's torch brings gigabytes of CUDA: on a machine without an NVIDIA device take the CPU build, if its index answers.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing hwlottery into $(VENV)"
	@if [ ! -e /dev/nvidiactl ] && [ ! -e /proc/driver/nvidia ] && $(BIN)/python -c \
	  'import urllib.request as r; r.urlopen("$(TORCH_CPU_INDEX)/torch/", timeout=5)' 2>/dev/null; then \
	  $(BIN)/pip install -q --disable-pip-version-check -c constraints.txt --index-url $(TORCH_CPU_INDEX) torch; fi
	@$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.tested-with: $(VENV)/.installed
	@$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@

# System tools: installed where we are root with apt at hand, else said in one line; what needs them is not measured.
tool-%:
	@command -v $* >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing $*"; (apt-get install -qq -y $* || { apt-get update -qq && apt-get install -qq -y $*; }) >/dev/null 2>&1 \
	      || echo "$* could not be installed: what needs it is not measured"; \
	  else echo "$* is missing: what needs it is not measured (apt-get install $*)"; fi; }
