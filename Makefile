# `make` lists the targets. None of them asks a question or needs a terminal.
MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/sh

# Compiled modules go to the cache, even if the machine's PYTHONDONTWRITEBYTECODE forbids writing them (see ./menagerie).
CACHE := $(or $(MENAGERIE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/menagerie)
export PYTHONPYCACHEPREFIX := $(CACHE)/pycache
export PYTHONDONTWRITEBYTECODE :=

# Where programs come from (`release`: the projects' own files; see tools/releases.py), and a mirror of those files.
export MENAGERIE_PROGRAMS := $(or $(PROGRAMS),$(MENAGERIE_PROGRAMS))
export MENAGERIE_MIRROR := $(or $(MIRROR),$(MENAGERIE_MIRROR))

BIN := .venv/bin
# ansible-lint runs the ansible next to it, and warns if PATH has another one first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
PYTEST := $(BIN)/python -m pytest
SLOW_AT_ONCE := 4
# Some of them wait for processes that they start: make check took 156 s on 2 cores, and 208 s with a process a core.
UNIT_AT_ONCE := 4
# They have what the foreground leaves. Four of them are no faster than three, and make tests miss their own time-outs.
BESIDE_AT_ONCE := 3
LONGEST := --durations=25 --durations-min=5
LINT := format-check types imports yaml ansible site
# After the set-up, the machine has all that tests need: a skipped test fails (tests/skips.py).
unit stacks slow timed beside in-lab test soak: export MENAGERIE_NO_SKIPS := 1
# What only `make soak` needs: the versions from which the lab upgrades, and NVIDIA's device plugin.
FOR_SOAK := nvidia-device-plugin $(addsuffix @1.35.4,kube-apiserver kube-controller-manager kube-scheduler kubelet kubeadm kubectl kube-proxy)

.DEFAULT_GOAL := help
.PHONY: help foretell setup programs build lab lab-down check docs format-check types imports yaml ansible site unit stacks slow timed beside in-lab foreground background test bench soak conformance golden format lock clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

foretell:
	@tools/setup.sh foretell

setup: ## Install Debian packages and .venv (make lab and make test do this automatically)
	@tools/setup.sh

programs: foretell build ## Build every program of tools/ into the cache (make lab builds what it needs)

build: setup
	@$(BIN)/python -m tools </dev/null

lab: foretell setup ## Bring up the cluster `lab` on this machine (PROGRAMS=release builds less)
	@./menagerie up lab --yes </dev/null

lab-down: setup ## Remove the lab; only the cache stays
	@./menagerie destroy lab --yes </dev/null

check: setup ## Lint, types, import rules, unit tests
	@$(MAKE) --keep-going -j2 --output-sync=target $(LINT) unit

docs: setup ## Build the documentation's site in .menagerie/site; a dead link or anchor fails
	@$(MAKE) site
	@echo 'open .menagerie/site/index.html'

format-check:
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types:
	$(BIN)/mypy --cache-dir $(CACHE)/mypy

imports:
	$(BIN)/lint-imports --no-cache

yaml:
	$(BIN)/yamllint --strict .

ansible:
	$(BIN)/ansible-lint --offline --profile production -q

site:
	$(BIN)/zensical build --strict

unit:
	$(PYTEST) -q -n $(UNIT_AT_ONCE) -m "not lab and not engine and not programs" </dev/null

stacks: programs ## Whole stacks of every cloud under the real engine, against simulated clouds
	$(PYTEST) -q -n auto --dist loadgroup -m "engine and not soak" </dev/null

# These tests mostly wait, so more of them run at once than there are cores.
slow: programs ## What check leaves out, except lab and soak: etcds, API servers, Ansible, whole stacks
	$(PYTEST) -q $(LONGEST) -n $(SLOW_AT_ONCE) --dist loadgroup --no-loadscope-reorder -m "(engine or programs) and not soak" </dev/null

# The part of slow that `make test` runs in the foreground, before the lab.
timed: build
	$(PYTEST) -q $(LONGEST) -n $(SLOW_AT_ONCE) --dist loadgroup --no-loadscope-reorder -m "timed and not soak" $$($(BIN)/python -m tests.levels) </dev/null

# These tests may almost stop while the foreground is busy, so they have only the time-out of a test that hangs. If one goes on
# hanging while it cleans up, its stack is printed.
beside: export MENAGERIE_NO_CLOCK := 1
beside:
	$(PYTEST) -q $(LONGEST) -o faulthandler_timeout=2700 -n $(BESIDE_AT_ONCE) --dist loadgroup --no-loadscope-reorder -m "not (timed or lab or soak)" </dev/null

in-lab: build ## The lab from scratch with every proof, and the faults
	$(PYTEST) $(LONGEST) -m "lab and not soak" tests/lab tests/faults </dev/null

foreground: timed in-lab

background: $(LINT) beside

# Linters, and tests that need no program, run next to the build; other tests wait for it.
test: foretell setup ## Everything: check and slow, and the lab from scratch with every proof
	@$(BIN)/python -m tests.beside build foreground background

bench: setup ## Compare the time of a bring-up with the same cluster built by hand
	$(BIN)/python -m tests.bench </dev/null

soak: programs ## make test, TIMES times (5), key and release changes, then faults, alone and in pairs, for HOURS (1)
	$(BIN)/python -m tools $(FOR_SOAK) </dev/null
	$(BIN)/python -m tests.repeats --times $(or $(TIMES),5) </dev/null
	$(PYTEST) -m "soak and not lab" </dev/null
	MENAGERIE_FUZZ=$(or $(FUZZ),2000) $(PYTEST) -s tests/cluster/test_fuzz.py --timeout 0 </dev/null
	$(PYTEST) -m "lab and soak" tests/lab tests/faults </dev/null
	$(BIN)/python -m tests.bench.soak --hours $(or $(HOURS),1) </dev/null

conformance: lab ## Run Kubernetes' Conformance suite against the lab (FOCUS=regular expression runs a part)
	$(BIN)/python -m tests.conformance $(if $(FOCUS),--focus '$(FOCUS)') </dev/null

golden: setup ## Rewrite the golden files; review the diff
	MENAGERIE_UPDATE_GOLDEN=1 $(PYTEST) -q -n auto -m "not lab and not soak" </dev/null

format: setup ## Format the Python files
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

lock: setup ## Regenerate requirements.lock (UPGRADE=1 takes newer versions)
	$(BIN)/python -m tools.lock $(if $(UPGRADE),--upgrade)
	@tools/setup.sh env

clean: ## Remove what make created in this checkout; the cache and the lab stay
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis .ansible .cache .menagerie/site
