PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Two test workers with torch threads that spin while they wait would fight for the cores.
export OMP_WAIT_POLICY ?= passive

.PHONY: demo test slow lint sanitize fuzz clean

## Train a network on the digits data, round it to a circuit, prove the circuit and run it.
demo: $(READY)
	$(BIN)/gatelight train digits --out runs/demo --overwrite
	$(BIN)/gatelight inspect runs/demo
	$(BIN)/gatelight compile runs/demo -o runs/demo/digits.gl --overwrite
	$(BIN)/gatelight run runs/demo/digits.gl digits
	$(BIN)/gatelight bench runs/demo/digits.gl

## Lint, types, import directions, doctests and tests.
test: lint
	$(BIN)/python -m pytest -q -n 2 -m 'not slow'

## Tests that take long: GPU kernels compiled and interpreted, an install from scratch.
slow: $(READY)
	$(BIN)/python -m pytest -q -n 2 -m slow tests

## Kernels and engine under AddressSanitizer, UndefinedBehaviorSanitizer and ThreadSanitizer, on random and hostile input.
sanitize: $(READY)
	tests/ops/sanitize.sh
	PYTHON=$(BIN)/python tests/engine/fuzz.sh 20000 30000

## Random models, inputs and calls: stack = sequential = circuit, one rule for inputs, no crash under AddressSanitizer.
fuzz: $(READY)
	$(BIN)/python tests/fuzz/models.py 2500
	$(BIN)/python tests/fuzz/inputs.py 3000
	PYTHON=$(BIN)/python tests/fuzz/api.sh 20000

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(READY): pyproject.toml constraints.txt CMakeLists.txt $(shell find src/gatelight/csrc -type f)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gatelight needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) build dist
