# Two commands do everything, each alone on a machine that has Python 3.11 to
# 3.13 and make: they make .venv, install what is pinned, and do their job.
#
#   make parity    run the reference and the three ports, compare every step
#   make test      run the tests; of the long ones a sample, by the commit
#   make test-all  run every test; with SHARD=1/4 a quarter of them: of the
#                  four each runs in a job of its own, or one after another
#
# And for those who make releases:
#
#   make test-versions  the oldest and the pinned libraries, each Python that is
#                       here, each framework alone and none: docs/versions.md
#   make dist           build into dist/ twice, alike, with hashes and a bill of
#                       materials
#   make audit          ask for known vulnerabilities of what is pinned
#   make pages          the ready pages, which `make dist` then packs too
#   make pictures       the pages' pictures in docs/, by Chromium
#
# make parity ARGS="--preset lesson --port torch" hands options on.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
EXTRAS ?= all,test,peers
ARGS ?=
SHARD ?=
SEED ?= $(shell git rev-parse --short=10 HEAD 2>/dev/null || echo none)
PYTEST := OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n auto \
          --dist worksteal --durations 10
READY := .venv/.installed-$(EXTRAS)

# What JAX compiles and mypy reads is kept: the second time takes half as long.
export MYPY_CACHE_DIR ?= $(CURDIR)/.venv/mypy
export JAX_COMPILATION_CACHE_DIR ?= $(CURDIR)/.venv/jax
export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS ?= 0
export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES ?= -1

.PHONY: parity test test-all test-versions dist audit pages pictures bench clean

parity: $(READY)
	@.venv/bin/parity check $(ARGS)

# XLA compiles twice as fast with these, to programs that are a little slower.
# test-all takes it as it comes, as does everything that users run.
test: export XLA_FLAGS ?= --xla_cpu_use_fusion_emitters=false \
                          --xla_backend_optimization_level=0
test: $(READY) .venv/.mlx
	@$(PYTEST) --sample=$(SEED) $(ARGS)

test-all: $(READY) .venv/.mlx
	@$(PYTEST) $(if $(SHARD),--shard=$(SHARD)) $(ARGS)

test-versions:
	@$(PYTHON) -m parity_tests.support.versions docs/versions.md $(ARGS)

# The date of the last commit stands in the archives, so both builds are alike.
dist: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null)
dist: .venv/.release
	@rm -rf dist
	@for out in dist dist/again; do \
	    .venv/release/bin/python -m build --outdir $$out . > dist.log 2>&1 \
	    || { cat dist.log; exit 1; }; done; rm dist.log
	@cd dist && sha256sum *.whl *.tar.gz > SHA256SUMS \
	    && (cd again && sha256sum --quiet --check ../SHA256SUMS) \
	    && rm -r again && cat SHA256SUMS
	@.venv/release/bin/cyclonedx-py requirements constraints.txt \
	    --pyproject pyproject.toml --output-reproducible \
	    --output-file dist/transformer-parity.cdx.json 2> /dev/null

audit: .venv/.release
	@.venv/release/bin/pip-audit --strict --no-deps --disable-pip \
	    --requirement constraints.txt > .venv/audit.log 2>&1; status=$$?; \
	if grep -qE '^Traceback|could not be audited' .venv/audit.log; then \
	    echo "Nothing was audited: pypi.org was not reached, or does not" \
	        "know what is pinned; try again where it is. Its last words:"; \
	    tail -1 .venv/audit.log | cut -c1-160; exit 2; fi; \
	cat .venv/audit.log; exit $$status

pages: $(READY)
	@.venv/bin/parity read --out build/pages
	@.venv/bin/python -m parity.reading.ready build/pages

pictures: pages
	@.venv/bin/python -m parity_tests.support.page_pictures build/pages docs

bench: .venv/.bench
	@.venv/bin/python -m benchmarks $(ARGS)

# keras-hub alone asks for a TensorFlow beside which ours does not run.
.venv/.bench: $(READY)
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check \
	    --no-deps -c constraints.txt keras-hub kagglehub kagglesdk ctranslate2
	@touch $@

.venv/.release: pyproject.toml
	@$(PYTHON) -m venv .venv/release
	@.venv/release/bin/python -m pip install --quiet \
	    --disable-pip-version-check 'build>=1.2' 'cyclonedx-bom>=7' \
	    'pip-audit>=2.9'
	@touch $@

$(READY): pyproject.toml constraints.txt
	@echo "Installing [$(EXTRAS)] into .venv, once: all is 3.6 GB, some minutes."
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@.venv/bin/python -m pip install --disable-pip-version-check \
	    --progress-bar off -c constraints.txt -e '.[$(EXTRAS)]' \
	    > .venv/install.log 2>&1 & pip=$$!; passed=0; \
	while kill -0 $$pip 2> /dev/null; do \
	    sleep 1; passed=$$((passed + 1)); \
	    if [ $$((passed % 15)) = 0 ]; then \
	        echo "  $$passed s, $$(du -sm .venv | cut -f 1) MB:" \
	            "$$(grep -aE '^ *(Collecting|Processing|Downloading|Using|Installing) ' \
            .venv/install.log | tail -n 1 | cut -c 1-50)"; fi; \
	done; wait $$pip || { cat .venv/install.log; exit 1; }
	@touch $@

# MLX has wheels for fewer systems; where it has none, it is not checked.
.venv/.mlx: $(READY)
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check \
	    --only-binary :all: -c constraints.txt 'mlx[cpu]' \
	    > .venv/mlx.log 2>&1 || echo "MLX has no wheel here: not checked."
	@touch $@

clean:
	rm -rf .venv build *.egg-info
