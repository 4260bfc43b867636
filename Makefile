# `make` says what there is. Nothing here asks a question or needs a terminal.
MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/sh

# Compiled modules go to the cache, also where the machine tells Python to write none (see ./menagerie).
CACHE := $(or $(MENAGERIE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/menagerie)
export PYTHONPYCACHEPREFIX := $(CACHE)/pycache
export PYTHONDONTWRITEBYTECODE :=

# Where programs come from (`release`: the projects' files; tools/releases.py), and a mirror that has those files.
export MENAGERIE_PROGRAMS := $(or $(PROGRAMS),$(MENAGERIE_PROGRAMS))
export MENAGERIE_MIRROR := $(or $(MIRROR),$(MENAGERIE_MIRROR))

BIN := .venv/bin
# ansible-lint runs the ansible beside it, and warns when PATH has another one first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
PYTEST := $(BIN)/python -m pytest
SLOW_AT_ONCE := 4
LONGEST := --durations=25 --durations-min=5
LINT := format-check types imports yaml ansible site
# The set-up has prepared the machine: what is skipped nevertheless fails (tests/skips.py).
unit stacks slow timed beside in-lab test soak: export MENAGERIE_NO_SKIPS := 1
# What the lab upgrades from.
BEFORE := $(addsuffix @1.35.4,kube-apiserver kube-controller-manager kube-scheduler kubelet kubeadm kubectl kube-proxy)

.DEFAULT_GOAL := help
.PHONY: help foretell setup programs lab lab-down check docs format-check types imports yaml ansible site unit stacks slow linted timed beside in-lab test bench soak conformance golden format lock clean

help: ## Say what there is
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

foretell:
	@tools/setup.sh foretell

setup: ## Install what is needed: Debian packages and .venv (make lab and make test do it themselves)
	@tools/setup.sh

programs: foretell setup ## Build every program of tools/ into the cache (make lab builds what it needs itself)
	@$(BIN)/python -m tools </dev/null

lab: foretell setup ## Bring up the cluster `lab` on this machine (PROGRAMS=release builds less)
	@./menagerie up lab --yes </dev/null

lab-down: setup ## Take the lab away; leaves nothing but the cache
	@./menagerie destroy lab --yes </dev/null

check: setup ## Lint, types, import rules, unit tests
	@$(MAKE) --keep-going -j2 --output-sync=target $(LINT) unit

docs: setup ## Build the documentation as a site into .menagerie/site; a dead link or anchor fails
	@$(MAKE) site
	@echo 'open .menagerie/site/index.html'

format-check:
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports --no-cache

yaml:
	$(BIN)/yamllint --strict .

ansible:
	$(BIN)/ansible-lint --offline --profile production -q

site:
	$(BIN)/zensical build --strict

unit:
	$(PYTEST) -q -n auto -m "not lab and not engine and not programs" </dev/null

stacks: programs ## Whole stacks of every cloud under the real engine, against simulated clouds
	$(PYTEST) -q -n auto --dist loadgroup -m "engine and not soak" </dev/null

# Most of it waits, so more run at once than there are cores.
slow: programs ## All that check leaves out but the lab and the soak: etcds, API servers, Ansible, and whole stacks
	$(PYTEST) -q $(LONGEST) -n $(SLOW_AT_ONCE) --dist loadgroup --no-loadscope-reorder -m "(engine or programs) and not soak" </dev/null

# With the CPU that what is timed leaves.
linted:
	@nice -n 19 $(MAKE) --keep-going -j2 --output-sync=target $(LINT)

# What `make test` has of slow before the lab, and beside it, with the fast set.
timed:
	$(PYTEST) -q $(LONGEST) -n $(SLOW_AT_ONCE) --dist loadgroup --no-loadscope-reorder -m "timed and not soak" $$($(BIN)/python -m tests.levels) </dev/null

# It may stand almost still for as long as the lab works, so no test of it has a limit.
beside: export MENAGERIE_NO_CLOCK := 1
beside:
	$(PYTEST) -q $(LONGEST) -n $(SLOW_AT_ONCE) --dist loadgroup --no-loadscope-reorder -m "not (timed or lab or soak)" </dev/null

in-lab: programs ## The lab from nothing with every proof, and the faults
	$(PYTEST) $(LONGEST) -m "lab and not soak" tests/lab tests/faults </dev/null

test: programs ## Everything: check and slow, and the lab from nothing with every proof
	@$(MAKE) --keep-going -j2 linted timed
	@$(BIN)/python -m tests.beside in-lab beside

bench: setup ## Measure a bring-up against the same cluster made by hand
	$(BIN)/python -m tests.bench </dev/null

soak: programs ## make test TIMES (5), keys and releases changed, then faults, alone and in pairs, for HOURS (1)
	$(BIN)/python -m tools $(BEFORE) </dev/null
	$(BIN)/python -m tests.repeats --times $(or $(TIMES),5) </dev/null
	$(PYTEST) -m "soak and not lab" </dev/null
	MENAGERIE_FUZZ=$(or $(FUZZ),2000) $(PYTEST) -s tests/cluster/test_fuzz.py --timeout 0 </dev/null
	$(PYTEST) -m "lab and soak" tests/lab tests/faults </dev/null
	$(BIN)/python -m tests.bench.soak --hours $(or $(HOURS),1) </dev/null

conformance: lab ## Run Kubernetes' Conformance suite against the lab (FOCUS=regular expression runs a part)
	$(BIN)/python -m tests.conformance $(if $(FOCUS),--focus '$(FOCUS)') </dev/null

golden: setup ## Rewrite the golden files; read the difference
	MENAGERIE_UPDATE_GOLDEN=1 $(PYTEST) -q -n auto -m "not lab and not soak" </dev/null

format: setup ## Put the Python files into shape
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: setup ## Remake requirements.lock (UPGRADE=1 takes newer versions)
	$(BIN)/python -m tools.lock $(if $(UPGRADE),--upgrade)
	@tools/setup.sh env

clean: ## Remove what make made in this checkout; the cache and the lab stay
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .ansible .cache .menagerie/site
