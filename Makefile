# Each target makes the environment it needs. `make train` and `make test` are all the set-up there is.

PYTHON ?= python3
BIN = .venv/bin
DIST = .venv-dist/bin
NATIVE = $(wildcard src/gradwalk/native/*.[ch] src/gradwalk/native/*/*.[ch])
MODULES = $(wildcard src/gradwalk/*.py src/gradwalk/*/*.py)

# targets may run side by side, but what is installed or built for them comes one at a time
ALONE = $(if $(shell command -v flock),flock Makefile)
# $(call debian,programs,packages,what fails without them)
debian = @which $(1) >/dev/null || $(ALONE) sh -c "apt-get -qq update && apt-get -qq install -y $(2) >/dev/null" \
	  || echo "$(1): missing and not to be installed; $(3) will fail: apt-get install $(2)"

.PHONY: help train test firefox chromium clang mingw advzip npm check docs docs-test notebook sanitize tsan soak coverage fuzz mutate bench builds arm64 dist generate clean

THREADED = tests/engine/test_threads.py tests/engine/test_stateful.py tests/compiler/test_batches.py

EMULATED = tests/engine/test_operators.py tests/engine/test_backward.py tests/engine/test_composites.py \
  tests/compiler/test_second_order.py tests/compiler/test_compiled_models.py \
  tests/compiler/test_kernel_accuracy.py::test_rows_keep_their_digits_on_wide_and_saturated_inputs \
  tests/functional/test_functional.py

PAGE = $(wildcard tests/show/test_page*.py) tests/show/test_own_python.py tests/show/test_widget.py

help:  ## list the targets
	@grep -E '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

train: .venv/installed  ## the main job: a small GPT on the bundled names, in about a second
	$(BIN)/gradwalk train

test: .venv/tested chromium clang npm check  ## style, types, and the whole suite on both engines
	GRADWALK_ENGINE=native $(BIN)/python -m pytest -n auto

firefox: .venv/tested chromium npm  ## all tests of the page (or PAGE=…) in Firefox (make test runs them in Chromium, and a few in both)
	GRADWALK_BROWSER=firefox GRADWALK_ENGINE=native $(BIN)/python -m pytest -n auto $(PAGE)

.PHONY: scale
scale: .venv-scale/installed  ## what is beyond one machine (or TESTS=…): jax, Dask, MPI, in an environment of its own
	GRADWALK_ENGINE=native .venv-scale/bin/python -m pytest --override-ini addopts="--strict-markers -ra" \
	  $(or $(TESTS),tests/scale)

chromium:  # the page is tested in real browsers
	$(call debian,chromium firefox-esr,chromium firefox-esr,the page's tests)

clang:  # each file of the engine is compiled by two compilers
	$(call debian,clang,--no-install-recommends clang,tests of the C files)

mingw:  # links for Windows
	$(call debian,x86_64-w64-mingw32-gcc,--no-install-recommends gcc-mingw-w64-x86-64,make builds)

advzip:  # wheels that are 3 % smaller
	$(call debian,advzip,--no-install-recommends advancecomp,make dist)

npm:  # through it the tests fetch axe-core, which judges whether everybody can use the page
	$(call debian,npm,--no-install-recommends npm,a test of the page)

check: .venv/tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright

docs: .venv-docs/installed  ## the site with the lessons, into build/site: any static host can serve that folder
	GRADWALK_ENGINE=reference .venv-docs/bin/python tools/site/builder.py build/site

docs-test: .venv/tested chromium docs  ## every cell of every lesson (or LESSONS="01 05") in the built site, in Chromium
	GRADWALK_ENGINE=native $(BIN)/python -m pytest docs/tests

notebook: .venv-notebook/installed chromium  ## the widget in a real JupyterLab, in Chromium, with a kernel; nbconvert
	.venv-notebook/bin/python -m pytest --override-ini addopts="--strict-markers -ra" tests/notebook

sanitize: .venv-sanitize/installed  ## the suite (or TESTS=…) under the address and undefined-behaviour sanitizers
	tools/sanitized .venv-sanitize/bin/python -m pytest -n auto -m "not unsanitized" $(TESTS)

tsan: .venv-thread/installed  ## the threaded tests (or TESTS=…) under the thread sanitizer
	SANITIZER=thread tools/sanitized .venv-thread/bin/python -m pytest -m "not unsanitized" $(or $(TESTS),$(THREADED))

soak: .venv-sanitize/installed  ## both engines at random, sanitized, for SOAK=3600 seconds; every sweep in full
	GRADWALK_SOAK=$(or $(SOAK),3600) tools/sanitized .venv-sanitize/bin/python -m pytest tests/engine/test_stateful.py
	GRADWALK_SOAK=1 tools/sanitized .venv-sanitize/bin/python -m pytest -n auto tests/engine/test_no_memory.py \
	  tests/engine/test_reentrancy.py tests/engine/test_processes.py
	GRADWALK_SOAK=1 GRADWALK_ENGINE=native $(BIN)/python -m pytest -n auto tests/training tests/show/test_page_random.py

# THIN=20 is the short form: at most 20 cases of a test, and nothing of the page, which is JavaScript
# (a test that fails under the tracer, where all takes longer, is make test's business: the figures come all the same)
coverage: .venv-coverage/installed chromium clang npm  ## Python lines and branches, and C lines, that the suite (or TESTS=…, or THIN=20) reaches: 95 %
	rm -f .coverage .coverage.*
	find build/coverage -name '*.gcda' -delete
	-GRADWALK_ENGINE=native .venv-coverage/bin/python -m coverage run -m pytest -q -n auto -m "not unsanitized and not untraced" \
	  $(or $(TESTS),$(THIN:%=--thin=% --ignore-glob='*/test_page*' --ignore=tests/lessons/test_site.py))
	.venv-coverage/bin/python -m coverage combine -q
	.venv-coverage/bin/python tools/reached.py $(THIN)

fuzz: .venv/tested  ## random programs, run in every way there is: FUZZ=20000 of them, from SEED=0 on
	$(BIN)/python tests/proof/fuzz.py $(or $(FUZZ),1000) --seed $(or $(SEED),0)

mutate: .venv/tested chromium clang npm  ## does a test notice one wrong line? MUTATE=60 random changes in a copy of the tree
	$(BIN)/python tools/mutate.py $(or $(MUTATE),60)

bench: .venv-bench/installed  ## side by side with floats, micrograd, torch, jax, casadi and NumPy (RECORD=--record: write it down)
	for each in engine compiled calls growth functional workers; do .venv-bench/bin/python benchmarks/$$each.py $(RECORD) || exit 1; done

builds: .venv-builds/installed clang mingw  ## the C engine compiles for other systems, C libraries, compilers and standards
	.venv-builds/bin/python tools/builds.py

# the reference engine is the same Python anywhere, and slow. The long form: make arm64 TESTS="tests/engine tests/compiler tests/functional"
arm64: .venv-arm64/installed .venv/installed  ## emulated: a few suites (or TESTS=…), and the same bits as here to the last
	GRADWALK_KERNELS=baseline $(BIN)/python tools/builds/bits.py .venv-arm64/bin/python
	GRADWALK_ENGINE=native .venv-arm64/bin/python -m pytest -k "not reference" $(or $(TESTS),$(EMULATED))

dist: .venv-dist/installed advzip  ## a source distribution, a wheel for this machine, one for all others; checked and tried
	rm -rf dist build/lib* build/bdist*
	LDFLAGS=-s $(DIST)/python -m build --quiet --outdir dist
	GRADWALK_PURE=1 $(DIST)/python -m build --quiet --wheel --outdir dist
	advzip --recompress --shrink-insane --iter=60 --quiet dist/*.whl
	$(DIST)/twine check --strict dist/*
	$(DIST)/check-wheel-contents dist/*.whl
	$(DIST)/pyroma --min 10 .
	find dist -name '*.whl' -size +768000c | (! grep .)  # 750 KB
	$(DIST)/python tools/try_dist.py

generate: .venv/installed  ## write what follows from the table: C header, ops.js, docs/ops.md, stubs
	$(BIN)/python tools/generate.py

clean:  ## remove environments and everything built
	rm -rf .venv .venv-* build dist src/gradwalk/*.so src/*.egg-info

.venv/installed: pyproject.toml setup.py $(NATIVE)
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable .
	@touch $@

.venv/tested: .venv/installed
	$(BIN)/pip install --quiet --editable '.[test]'
	@touch $@

# the environment of a target: what is installed, how it is built, and whether it was
.venv-%/installed: pyproject.toml setup.py $(NATIVE)
	$(PYTHON) -m venv .venv-$*
	$(BUILD_$*) $(ALONE) .venv-$*/bin/pip install --quiet $(PACKAGES_$*)
	$(CHECK_$*)
	@touch $@

# those with the packages of .venv, and the engine built otherwise
.venv-sanitize/installed .venv-thread/installed .venv-coverage/installed: .venv-%/installed: .venv/tested $(MODULES)
	$(PYTHON) -m venv --without-pip .venv-$*
	cd .venv-$*/lib/python3*/site-packages && \
	  pwd | sed "s|\.venv-$*|.venv|; s|.*|import site; site.addsitedir('&')|" > packages.pth
	$(BUILD_$*) $(ALONE) $(BIN)/python -m pip --python .venv-$*/bin/python install --quiet --no-deps --no-build-isolation .
	$(CHECK_$*)
	@touch $@

PACKAGES_docs = -r tools/site/requirements.txt
PACKAGES_notebook = '.[test]' jupyterlab nbconvert
BUILD_sanitize = GRADWALK_SANITIZE=address
CHECK_sanitize = grep -q __asan_init .venv-sanitize/lib/*/site-packages/gradwalk/_native*.so
BUILD_thread = GRADWALK_SANITIZE=thread
CHECK_thread = grep -q __tsan_init .venv-thread/lib/*/site-packages/gradwalk/_native*.so
BUILD_coverage = GRADWALK_COVERAGE=1
PACKAGES_scale = --editable '.[jax,cluster]' mpi4py mpich pytest
PACKAGES_bench = --editable . -r benchmarks/requirements.txt
PACKAGES_builds = ziglang
PACKAGES_dist = build twine check-wheel-contents pyroma

.venv-docs/installed: tools/site/requirements.txt
.venv-bench/installed: benchmarks/requirements.txt

# Debian's Python for arm64, unpacked and run by qemu; the compiler is a cross compiler, which needs no emulation
.venv-arm64/python:
	$(call debian,qemu-aarch64 aarch64-linux-gnu-gcc mmdebstrap,--no-install-recommends qemu-user gcc-aarch64-linux-gnu \
	  libc6-dev-arm64-cross mmdebstrap debian-archive-keyring,make arm64)
	rm -rf .venv-arm64
	mkdir -p .venv-arm64/bin
	mmdebstrap --quiet --variant=extract --arch=arm64 --include=python3.11,libpython3.11-dev,libstdc++6 bookworm .venv-arm64/root
	$(PYTHON) -m pip install --quiet --target .venv-arm64/lib/python3.11/site-packages --python-version 3.11 --only-binary :all: \
	  --platform manylinux2014_aarch64 --platform manylinux_2_28_aarch64 \
	  setuptools click numpy rich safetensors scipy anywidget pytest hypothesis mpmath
	cp tools/builds/python-arm64 .venv-arm64/bin/python
	echo "home = $(CURDIR)/.venv-arm64/root/usr/bin" > .venv-arm64/pyvenv.cfg
	@touch $@

.venv-arm64/installed: .venv-arm64/python pyproject.toml setup.py $(NATIVE)
	CFLAGS="-idirafter $(CURDIR)/.venv-arm64/root/usr/include" .venv-arm64/bin/python setup.py --quiet build \
	  --build-base build/arm64 --build-lib .venv-arm64/lib/python3.11/site-packages
	GRADWALK_ENGINE=native .venv-arm64/bin/python -m gradwalk doctor
	@touch $@
