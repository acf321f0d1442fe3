# The daily commands. `make run` and `make test` need only Python 3.11+ (with venv), git and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
URL    ?=
ARGS   ?=

.PHONY: run test check soak bench clean

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "silkline needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..." >&2; exit 2; }
	@test -x $(BIN)/python || { echo "creating the environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing silkline"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing the test tools"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

run: $(VENV)/.installed       ## crawl the bundled demo shop; URL=https://... crawls that instead
	@$(BIN)/silkline $(if $(URL),crawl '$(URL)' --follow-all,demo --crawl) $(ARGS)

# The suite starts hundreds of processes: none of them compiles what another one has compiled.
test soak: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/.installed-dev  ## the whole suite, several tests at a time (ARGS='-n 0': one)
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

check: $(VENV)/.installed-dev ## lint, types, import layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest tests/test_layers.py

soak: $(VENV)/.installed-dev  ## the long versions of the crash and model tests
	@SILKLINE_SOAK=1 $(BIN)/python -m pytest -m 'soak or not soak' --timeout 3600 -o faulthandler_timeout=0 $(ARGS)

bench: $(VENV)/.installed-dev ## see benchmarks/README.md
	@$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .silkline
