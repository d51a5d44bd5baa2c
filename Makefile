# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed-dev

.PHONY: demo test test-all check corpus format clean

demo: $(STAMP)
	$(BIN)/ksearch-tui run attention_prefill --device auto --budget 12
	@echo
	@echo "Now open the explorer:   $(BIN)/ksearch-tui"
	@echo "or watch a recorded run: $(BIN)/ksearch-tui replay attention"

# Many of them wait for a screen or a process: three workers keep two cores busy.
test: $(STAMP)
	$(BIN)/pytest tests -m "not slow" -n 3 --dist worksteal

test-all: $(STAMP)
	$(BIN)/pytest tests -n 2

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# CUDA that others wrote, for tests/translator/test_real_sources.py; fetched, never committed.
corpus: $(STAMP)
	$(BIN)/python scripts/fetch_corpus.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# uv if present, else venv and pip; the MLX back end is the one for this machine.
$(STAMP): pyproject.toml scripts/install.sh
	PYTHON=$(PYTHON) bash scripts/install.sh $(VENV)
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
