# Two commands do everything, each alone on a machine that has Python 3.11 to
# 3.13 and make: they make .venv, install what is pinned, and do their job.
#
#   make parity    run the reference and the three ports, compare every step
#   make test      run the tests; of the long ones a sample, by the commit
#   make test-all  run every test
#
# make parity ARGS="--preset lesson --port torch" hands options on.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
EXTRAS ?= all,test,peers
ARGS ?=
SEED ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo none)
PYTEST := OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n auto \
          --dist worksteal --durations 10
READY := .venv/.installed-$(EXTRAS)

.PHONY: parity test test-all clean

parity: $(READY)
	@.venv/bin/parity check $(ARGS)

test: $(READY)
	@$(PYTEST) --sample=$(SEED) $(ARGS)

test-all: $(READY)
	@$(PYTEST) $(ARGS)

$(READY): pyproject.toml constraints.txt
	@echo "Installing [$(EXTRAS)] into .venv, once: all is 3 GB, a minute or two."
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[$(EXTRAS)]' > .venv/install.log 2>&1 \
	    || { cat .venv/install.log; exit 1; }
	@touch $@

clean:
	rm -rf .venv build *.egg-info
