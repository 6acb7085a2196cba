# make demo   installs into .venv and runs the main job on data that come with octavolt
# make test   installs what developers need too, and runs all tests
# Another Python: make demo PYTHON=python3.12

PYTHON ?= python3

OCTAVOLT := .venv/bin/octavolt
RUN := runs/demo

.PHONY: demo test clean

demo: .venv/installed
	rm -rf $(RUN)
	$(OCTAVOLT) check demo
	$(OCTAVOLT) train mobilenet-v2 --data demo --epochs 12 --output $(RUN)
	$(OCTAVOLT) evaluate $(RUN)
	$(OCTAVOLT) predict $(RUN) examples/digits/*.png
	$(OCTAVOLT) report $(RUN)
	@echo "The report: $(CURDIR)/$(RUN)/report.html"

test: .venv/installed-dev
	.venv/bin/python -m pytest

# The package is installed as a link to src, so only a change of pyproject.toml installs anew.
.venv/installed: pyproject.toml | .venv/made
	.venv/bin/python -m pip install --editable .
	touch $@

.venv/installed-dev: pyproject.toml | .venv/made
	.venv/bin/python -m pip install --editable '.[dev]'
	touch .venv/installed $@

.venv/made:
	sh scripts/make-venv '$(PYTHON)' .venv
	touch $@

clean:
	rm -rf .venv $(RUN)
