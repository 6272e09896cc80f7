# Everything a fresh machine needs is installed here, into .venv; nothing outside it is changed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_STORE := build/demo
# Which coherent set of OpenTelemetry packages the tests run on.
OTEL_SET ?= tests/constraints/otel-1.45.1.txt

.PHONY: demo test lint docs bench matrix servers clean

## demo: run a real Numba program twice, cold and then warm, and print both summaries
demo: $(VENV)/demo
	@rm -rf $(DEMO_STORE) && mkdir -p $(DEMO_STORE)
	@echo; echo "== cold: nothing is in the store =="
	@NUMBA_CACHE_DIR=$(DEMO_STORE)/store $(BIN)/otel-kernel run --recording $(DEMO_STORE)/recording.db -- $(BIN)/python examples/numba_pricing.py
	@echo; echo "== warm: the same program again =="
	@NUMBA_CACHE_DIR=$(DEMO_STORE)/store $(BIN)/otel-kernel run --recording $(DEMO_STORE)/recording.db -- $(BIN)/python examples/numba_pricing.py

## test: lint, type checks, generated tables and the whole test suite
test: lint servers
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal

## bench: print what otel-kernel costs; BENCH names benchmarks, or --write writes docs/benchmarks.md
bench: $(VENV)/test
	@mkdir -p build
	PYTHONPATH=tests:tests/core/runtime $(BIN)/python -m benchmarks $(BENCH)

## matrix: run each runtime's tests on its versions and all sets of OpenTelemetry, and write docs/versions.md
matrix: $(VENV)/test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/nox --session matrix; status=$$?; $(BIN)/python tests/matrix.py && exit $$status

## docs: build the documentation site into build/docs; a link that leads nowhere fails it
docs: $(VENV)/test
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --quiet -d build/doctrees docs build/docs

## servers: build the Collector and Jaeger of the tests, once, into ~/.cache/otel-kernel (needs go)
servers: $(VENV)/test
	@PYTHONPATH=tests $(BIN)/python -m servers

lint: $(VENV)/test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m generators --check
	$(MAKE) --no-print-directory docs

$(VENV)/uv:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.7"
	@touch $@

$(VENV)/demo: $(VENV)/uv pyproject.toml boot/otel_kernel.pth
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable ".[numba]"
	@touch $@

$(VENV)/test: $(VENV)/uv pyproject.toml $(OTEL_SET) boot/otel_kernel.pth
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable ".[numba]" --group lint --constraint $(OTEL_SET)
	@touch $@

clean:
	rm -rf $(VENV) build dist
