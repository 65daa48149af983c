# Two commands do everything, each alone on a machine that has Python 3.11 to
# 3.13 and make: they make .venv, install what is pinned, and do their job.
#
#   make parity    run the reference and the three ports, compare every step
#   make test      run the tests
#
# make parity ARGS="--preset lesson --port torch" hands options on.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
EXTRAS ?= all,test
ARGS ?=
READY := .venv/.installed-$(EXTRAS)

.PHONY: parity test clean

parity: $(READY)
	@.venv/bin/parity check $(ARGS)

test: $(READY)
	@OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n auto --dist loadfile $(ARGS)

$(READY): pyproject.toml constraints.txt
	@echo "Installing [$(EXTRAS)] into .venv, once: all is 3 GB, a minute or two."
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check \
	    -c constraints.txt -e '.[$(EXTRAS)]' > .venv/install.log 2>&1 \
	    || { cat .venv/install.log; exit 1; }
	@touch $@

clean:
	rm -rf .venv build *.egg-info
