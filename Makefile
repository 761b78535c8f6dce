# Two commands do everything on a fresh machine with Python ≥ 3.11:
#   make demo   install, learn a cost for Pendulum, evaluate it, write a report
#   make test   install, run the tests

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := runs/demo
INSTALLED := $(VENV)/.installed

.PHONY: install demo test lint format clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "rhirl needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--editable ".[mujoco,box2d,minari,cluster,dev]"
	@touch $@

demo: install
	rm -rf $(DEMO)
	$(BIN)/rhirl train pendulum --out $(DEMO)
	$(BIN)/rhirl eval $(DEMO)
	$(BIN)/rhirl report $(DEMO)
	@echo "Open $(DEMO)/report.html in a browser."

test: install
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) runs build dist
