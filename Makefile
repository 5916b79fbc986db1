# Each target makes the virtual environment it needs: Python 3.11+ with pip, and make, are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
FAMILIES := cold-npx-race npx-heal bin-guard codex-budget declared-budget oauth-flow token-chain

.PHONY: gate test check bench nightly conformance canary-keys wheel clean
.DELETE_ON_ERROR:

# The main job: the gate on the shipped catalog.
gate: $(STAMP)
	$(BIN)/mcp-harness gate mcp.json

test: $(STAMP)
	$(BIN)/python -m pytest -n 2

# Lint, formatting, types, import contracts.
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Medians with their spread; figures of one machine at one time, never asserted. Then 100,000 token chains from one seed:
# how many were lost, by which accepted hole.
bench: $(STAMP)
	$(BIN)/python -m scenarios.benchmarks
	rm -rf out/bench-token-chain
	$(BIN)/mcp-harness campaign --scenario-family token-chain --runs 100000 --seed 7 --save out/bench-token-chain

# The official conformance suite against the fake servers. Needs pip's and npm's registries once; 3 when it has neither.
conformance: $(STAMP)
	$(BIN)/python -m scenarios.certification.official

# The credential keys of the pinned runtimes, measured on the real programs and on their fakes. They come from the cache,
# or from npm's registry, once; where they cannot be had, this says so and lets everything else go on.
canary-keys: $(STAMP)
	@$(BIN)/mcp-harness canary all --claims '*.key.*' --fakes; code=$$?; \
	if [ $$code -eq 3 ]; then \
	  printf '\n%s\n%s\n%s\n\n' \
	    '*********************** WARNING: NOT ALL CREDENTIAL KEYS WERE MEASURED ***********************' \
	    'A pinned runtime could not be had, so nothing proves today that its keys are what we compute.' \
	    'See the lines above; "mcp-harness canary install all" fills the cache.' >&2; \
	else exit $$code; fi

# The same tests with many more examples, those that take long (each line of each profile changed among them), the
# official suite, the fakes against what was recorded of the real programs, then five minutes of each scenario family
# from the day's seed, and a million token chains (an hour and a half on two cores; what was stopped goes on with
# `mcp-harness campaign --resume out/nightly-DAY-million`).
nightly: $(STAMP)
	$(BIN)/python -m pytest -n 2 --hypothesis-profile nightly scenarios/properties
	$(BIN)/python -m pytest -n 2 -m nightly
	$(BIN)/python -m scenarios.certification.official
	$(BIN)/mcp-harness canary --fakes
	for family in $(FAMILIES); do \
	  $(BIN)/mcp-harness campaign --scenario-family $$family --minutes 5 --seed $$(date +%Y%m%d) --save out/nightly-$$(date +%Y%m%d)-$$family || exit 1; \
	done
	rm -rf out/bench-token-chain
	$(BIN)/mcp-harness campaign --scenario-family token-chain --runs 1000000 --seed $$(date +%Y%m%d) \
	  --save out/nightly-$$(date +%Y%m%d)-million

wheel: $(STAMP)
	$(BIN)/python -m build --wheel --no-isolation

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; name one with make PYTHON=...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)
