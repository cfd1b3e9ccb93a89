# Everything is done inside this folder: the environment in .venv, downloads in .venv/cache, results in outputs.
# PYTHON chooses the interpreter (3.11 or newer): make eval PYTHON=python3.13

PYTHON ?= python3
SUITE ?= quickstart
RUN_PROFILE ?=
EVALUATION_PROFILE ?=
FAULT ?=
MUTATE ?=
SAMPLE ?= 60
RUNS ?= 500
SEED ?= 1
SECONDS ?= 60
TARGETS ?=

VENV := .venv
BIN := $(VENV)/bin
# The interpreter behind PYTHON, also when that one is .venv's own because .venv is activated.
BASE := $(shell $(PYTHON) -c 'import sys; print(sys._base_executable)')
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
MADE := $(VENV)/.python-$(VERSION)
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev
INSTALL := $(BIN)/python -m pip install --quiet --quiet --compile
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links

export PIP_CACHE_DIR ?= $(CURDIR)/$(VENV)/cache
export UV_CACHE_DIR ?= $(CURDIR)/$(VENV)/cache/uv
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests and agents start many interpreters, each of which would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE
# Makes this environment's programs the first that agents and tests find.
IN_VENV := PATH="$(CURDIR)/$(BIN):$$PATH"

.DEFAULT_GOAL := help
.PHONY: help setup eval test lint types imports pytest test-full soak fuzz fuzz-service conformance measure second compare mutants coverage format docs site lock clean

help: ## Show this list
	@echo "make TARGET [PYTHON=python3.x]"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

setup: $(DEV) ## Set up .venv with everything for running and for developing

eval: $(RUNTIME) ## Run a bundled suite, and by default one case with a scripted judge (SUITE, RUN_PROFILE, EVALUATION_PROFILE=name; FAULT=wrong_tool, lost_spans or no_delegation plants a fault)
	@$(BIN)/python -m compileall -q src
	@mkdir -p outputs
	@$(IN_VENV) CLAWTRACE_DEMO_FAULT="$(FAULT)" clawtrace eval --suite $(SUITE) \
		$(if $(RUN_PROFILE),--run-profile $(RUN_PROFILE)) \
		$(if $(EVALUATION_PROFILE),--evaluation-profile $(EVALUATION_PROFILE)) \
		--report json=outputs/$(SUITE).json --report junit=outputs/$(SUITE).xml
	@$(if $(filter quickstart,$(SUITE)),$(IN_VENV) clawtrace model-server configs/cases/judged/letter/judge.yaml -- \
		clawtrace eval --suite judged --evaluation-profile judged --report json=outputs/judged.json)

test: lint types imports pytest ## Check style, types and layers, and run the tests of the first tier (about 6 minutes on two cores)

lint: $(DEV) ## Check style and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV) ## Check types
	$(BIN)/mypy

imports: $(DEV) ## Check that imports point downward only
	$(IN_VENV) lint-imports

pytest: $(DEV) ## Run the tests of the first tier
	@$(BIN)/python -m compileall -q src
	$(IN_VENV) pytest -n auto --dist loadfile

test-full: test ## Run all tests of both tiers (about 50 minutes on two cores); what fails beside other tests runs once more, alone
	@$(IN_VENV) pytest -n auto --dist loadfile --no-loadscope-reorder --second-tier || { \
		[ $$? -eq 1 ] && echo "Once more, alone, what failed beside other tests:" && \
		$(IN_VENV) pytest --second-tier --last-failed --last-failed-no-failures none -v; }

soak: $(DEV) ## Run real frameworks against a model that behaves at random (RUNS of each, SEED); findings go to outputs/soak
	$(IN_VENV) python tests/soak/soak.py --runs $(RUNS) --seed $(SEED) --out outputs/soak

fuzz: $(DEV) ## Feed what others write, changed by a fuzzer that follows the code, to every reader (SECONDS for each of TARGETS, all by default); findings go to outputs/fuzz
	@[ -d $(VENV)/fuzz ] || $(INSTALL) --target $(VENV)/fuzz atheris
	PYTHONPATH="$(VENV)/fuzz:$$PYTHONPATH" $(IN_VENV) python tests/soak/fuzz.py $(TARGETS) --seconds $(SECONDS) --out outputs/fuzz

fuzz-service: $(DEV) ## Send `clawtrace serve` what its OpenAPI allows and does not (schemathesis), and garbage over gRPC (SECONDS for both, SEED)
	$(IN_VENV) python tests/soak/fuzz_service.py --seconds $(SECONDS) --seed $(SEED) --out outputs/fuzz-service

conformance: $(DEV) ## Try real frameworks in the scenarios of `clawtrace conformance` (CLIENTS, all by default; NEWEST=1: their newest versions, NEWEST=2026-04-01: those of a day)
	$(IN_VENV) python tests/conforming/client_table.py $(CLIENTS) $(if $(NEWEST),--newest $(filter-out 1,$(NEWEST)))

measure: $(DEV) ## Show what is known of all recordings and of random programs, and whether it is true
	$(IN_VENV) python tests/soak/measure.py

second: $(DEV) ## Compare verdicts with a second implementation on random programs (RUNS of them, SEED; WORDS=openinference, traceloop, older, by_hand or twice); a difference can be repeated
	$(IN_VENV) python tests/second/compare.py --traces $(RUNS) --seed $(SEED) $(if $(WORDS),--words $(WORDS))

compare: $(DEV) ## Measure clawtrace and its peers (PEERS, all by default) on the same work; docs/comparison.md says how
	$(IN_VENV) python benchmarks/compare $(PEERS)

mutants: $(DEV) ## Change the code in SAMPLE places, one at a time, and show what no test notices (MUTATE=facts/calls)
	nice -n 10 $(BIN)/python benchmarks/mutants.py $(MUTATE) --sample $(SAMPLE)

coverage: $(DEV) ## Run all tests and show which lines they did not reach
	$(IN_VENV) coverage run -m pytest --full
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --show-missing

format: $(DEV) ## Put the code into the house's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV) ## Write the generated pages of docs/reference, the JSON Schemas and the compiled protos again
	$(BIN)/python docs/generate.py
	$(BIN)/python proto/compile.py

site: $(DEV) ## Build the documentation as a site in build/site; a broken link fails
	$(BIN)/zensical build --strict --clean
	cp -R action.yml ci collector-config configs proto build/site

lock: $(DEV) ## Choose the newest allowed versions and write the lock files again
	printf 'hatchling>=1.27\neditables>=0.5\n' | $(BIN)/$(COMPILE) pyproject.toml - --extra agents --extra mcp \
		--upgrade --output-file requirements.lock
	$(BIN)/$(COMPILE) --group dev --constraints requirements.lock --upgrade --output-file requirements-dev.lock

clean: ## Remove the environment, caches and results
	rm -rf $(VENV) outputs .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage* dist build .cache

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; '$(PYTHON)' is $(VERSION). Try: make PYTHON=python3.13" >&2; exit 1; }
	@echo "Setting up $(VENV) with Python $(VERSION) ..."
	@$(BASE) -m venv --clear $(VENV)
	@touch $@

$(RUNTIME): $(MADE) requirements.lock pyproject.toml
	@$(INSTALL) --require-hashes -r requirements.lock
	@$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME) requirements-dev.lock
	@echo "Installing what developing needs ..."
	@$(INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@
